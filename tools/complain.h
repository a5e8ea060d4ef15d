// What a program of the tools says on standard error. Nobody may be able to read it (2>&-, a full disk), which changes
// neither what the program does nor the status that it ends with: fmt::print() would throw.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace tutti::tools {

template <class... Parts>
void complain(fmt::format_string<Parts...> text, Parts&&... parts) {
  std::fputs(fmt::format(text, std::forward<Parts>(parts)...).c_str(), stderr);
}

}  // namespace tutti::tools
