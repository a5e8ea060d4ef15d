// Non-blocking stream sockets: TCP over IPv4 and IPv6, and abstract Unix sockets.
#pragma once
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "net/address.h"
#include "process/fd.h"

namespace tutti {

// A listener on one address; an ip of zeros means all of that family. An IPv6 wildcard takes IPv4 too when `dual`.
// Port 0: any. Returns an empty owner with errno set when it cannot be had.
UniqueFd listenTcp(const Address& address, bool dual) noexcept;
uint16_t portOf(int fd) noexcept;
UniqueFd listenUnix(const std::string& name) noexcept;

// A connection that is under way. Empty with errno set when it fails at once.
UniqueFd dialTcp(const Address& address) noexcept;
UniqueFd dialUnix(const std::string& name) noexcept;
int pendingError(int fd) noexcept;  // SO_ERROR

// Who is at the other end, for log lines.
std::string describePeer(int fd);
// Whose share of a listener's waiting room a caller takes: its IPv4 address, or its network's of IPv6 (/64), in bytes.
// Empty for who has none to keep to: callers from this host, who are the ranks of a job on one host.
std::string neighbourhoodOf(int fd);
std::string neighbourhoodOf(const Address& address);
// Whether the process at the other end of a Unix socket belongs to our user (or to the system's).
bool sameUser(int fd) noexcept;
// Not where this process runs as the user as which the system shows all those whom its user namespace has no number for
// (user_namespaces(7)): then they all look like ours.
bool tellsUsersApart() noexcept;
bool isUnix(int fd) noexcept;
// The process that listens at a Unix socket; nullopt when none answers, for 20 ms. Blocks so long.
std::optional<ucred> holderOf(const std::string& unixName) noexcept;
// Whether it is known to be of this user.
bool isOfThisUser(const std::optional<ucred>& holder) noexcept;
// Whether it may be, as far as the system shows: enough to make way for it, and not to trust it.
bool looksLikeThisUser(const std::optional<ucred>& holder) noexcept;
void setNoDelay(int fd) noexcept;
// Of a TCP socket: what was sent must be acknowledged, and an idle peer's system must answer, within about `span`.
void limitSilence(int fd, std::chrono::milliseconds span) noexcept;

}  // namespace tutti
