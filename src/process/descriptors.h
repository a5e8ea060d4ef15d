// A process that has no file descriptor left fails in places that do not say so: their texts get a word of it.
#pragma once
#include <string>
#include <string_view>

namespace tutti {

// Somebody could not be let in for want of a descriptor. Any thread.
void noteLackOfDescriptors() noexcept;
// What to add to the text of a failure that may come of it, unless it says so itself: "; this process had no file
// descriptor left (...)", or "".
std::string lackOfDescriptors(std::string_view text);

}  // namespace tutti
