// A key that the processes of one user on one host have in common, and other users do not know: of it, names are made
// that nobody else can work out.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace tutti::control {

using UserKey = std::array<std::byte, 32>;

// From the file tutti-key in `runtimeFolder` (XDG_RUNTIME_DIR) or, where that is not this user's alone, in
// /tmp/tutti-<user>, which is made for it; whoever asks first draws it. Nullopt where neither can be had: another user
// may have taken that name, or nothing can be written. Any thread.
std::optional<UserKey> userKey(const std::optional<std::string>& runtimeFolder);
// The same in one folder: nullopt where that is not this user's alone, or is a link.
std::optional<UserKey> userKeyIn(const std::string& folder);

}  // namespace tutti::control
