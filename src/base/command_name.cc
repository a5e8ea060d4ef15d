#include "base/command_name.h"

#include <algorithm>
#include <cctype>

namespace tutti {
namespace {

std::string lettersOf(std::string_view name) {
  std::string letters;
  for (const unsigned char c : name)
    if (c != '_' && c != '-') letters += static_cast<char>(std::tolower(c));
  return letters;
}

}  // namespace

// Two measuring programs have nccl-tests' names.
std::string commandName(Collective collective) {
  if (collective == Collective::kAllToAll) return "alltoall";
  if (collective == Collective::kSendRecv) return "sendrecv";
  std::string name(nameOf(collective));
  std::ranges::replace(name, '-', '_');
  return name;
}

std::optional<Collective> operationCalled(std::string_view name) {
  constexpr size_t kLongest = 64;  // what is longer is no name, and need not be looked at
  if (name.size() > kLongest) return std::nullopt;
  const std::string wanted = lettersOf(name);
  for (int number = 0; number < kCollectives; ++number)
    if (const auto one = static_cast<Collective>(number); lettersOf(commandName(one)) == wanted) return one;
  return std::nullopt;
}

}  // namespace tutti
