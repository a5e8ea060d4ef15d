// A folder that is this user's alone, in which one process leaves for another what no third is to know or to take.
#pragma once
#include <string>
#include <vector>

#include "process/fd.h"

namespace tutti {

// Where it may be, the best first: /run/user/<user>, which the system makes, and /tmp/tutti-<user>. All processes of a
// user on a host look in the same places, whatever their environment says.
std::vector<std::string> userFolders();

// The first of these that is this user's alone; the last of them is made where it is not there. Empty: none is, since
// another user has taken that name, say, or nothing can be written. Any thread.
std::string chooseUserFolder(const std::vector<std::string>& candidates);

// That folder, to be used by this descriptor: it is no link, this user's, and closed to all others. Whoever may rename
// things in the folder above can put it out of the way, and nothing else in its place. Empty: it is not like that, or
// not there.
UniqueFd openUserFolder(const std::string& path) noexcept;
// The same of a file in it, which is not waited for where it is a pipe. Empty: it is no such file.
UniqueFd openUserFile(int folder, const std::string& name) noexcept;

}  // namespace tutti
