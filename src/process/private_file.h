// Files of which no other user of the host may decide anything: those that are written here, and those that say with
// whom to join.
#pragma once
#include <string>
#include <string_view>

namespace tutti {

// Writes a file that its user alone may read, where nothing of that name is yet: a file or a link that is there, be it
// another user's, is neither followed nor changed. `folder`: a descriptor that a relative path starts at, or AT_FDCWD.
// 0; else an errno value, and no file is left.
int writePrivateFile(int folder, const std::string& path, std::string_view content) noexcept;

// The content of a file that holds a secret, of at most `mostBytes`, without white space around it. Never waits, also
// not for the other end of a pipe. Links are followed: what they lead to must be a regular file, this user's or root's,
// that no other user may change or read; a file of root's may be read by its group, as systems of containers hand out
// secrets. Throws Error, whose text is about the file but does not name it: kSystem when it cannot be read, perhaps not
// yet, kInvalidUsage when it is not to be trusted, or not to be had however long one waits.
std::string readPrivateFile(const std::string& path, size_t mostBytes);

}  // namespace tutti
