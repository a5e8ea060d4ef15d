// Windows over links within a host: each end passes the file of its own, and maps the other's.
#pragma once
#include <string>

#include "link/link.h"
#include "process/fd.h"

namespace tutti::link {

// This process's, which stays open; -1 where there is none, and `why` says why.
int windowForPeers(std::string& why);

// From now on what the peer lends in its window is read there. Where `file` is none, or no window, the connection goes
// without, and its remark says why (`absent`, where there is no file).
void readWindow(Connection& connection, UniqueFd file, std::string absent);

}  // namespace tutti::link
