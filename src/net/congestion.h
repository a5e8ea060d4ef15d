// By which rules a TCP socket sends as much as the network takes.
#pragma once
#include <string>
#include <string_view>

namespace tutti {

// Without the space around it, where this system has such a congestion control and lets this process use it. Throws
// Error(kInvalidArgument) that names those it may use. Empty: as chosen.
std::string checkedCongestion(std::string_view text);
// Of a TCP socket that neither listens nor is connected yet: the system's, unless it paces by what it has measured, as
// BBR does: ranks wait for each other with little to send, which is measured too, and then the next long message is
// held back for tens of milliseconds (docs/decisions/0048). Instead cubic, or reno, whichever this process may use; if
// neither, it stays. Later it is too late: a connection that was BBR's once is held back for ever (0051). What a
// listener accepts goes by what the listener has.
void chooseCongestion(int fd) noexcept;
// Of any TCP socket; empty: it stays.
void setCongestion(int fd, std::string_view checked) noexcept;
// What it goes by; empty where that can not be asked.
std::string congestionOf(int fd);

}  // namespace tutti
