// What a peer calls itself, or says, as it may stand in a log and on a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tutti {

// `text` in UTF-8, where each byte of a control character, of one that turns the direction of writing, or of what is no
// UTF-8 becomes "\x1b" and the like; but for `let`, if it is not 0. At most `most` bytes (3 at least): a longer one
// ends in "...". Of such a text it returns the text itself.
std::string plainText(std::string_view text, size_t most, char let = '\0');

// How deep the brackets and braces of a JSON text are nested, where it is one. It is asked before a text from outside
// is parsed: whoever prints or copies what came of it calls itself for each of them.
size_t jsonDepth(std::string_view text) noexcept;
inline constexpr size_t kMostJsonDepth = 64;

}  // namespace tutti
