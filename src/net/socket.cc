#include "net/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "net/congestion.h"

namespace tutti {
namespace {

constexpr int kBacklog = 4096;  // the system lowers it to its own limit
constexpr int kStreamType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct SocketName {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketName nameOf(const Address& address) noexcept {
  SocketName name;
  if (address.v6) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&name.storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(address.port);
    in6->sin6_scope_id = address.scope;
    std::memcpy(&in6->sin6_addr, address.ip.data(), 16);
    name.bytes = sizeof *in6;
  } else {
    auto* in4 = reinterpret_cast<sockaddr_in*>(&name.storage);
    in4->sin_family = AF_INET;
    in4->sin_port = htons(address.port);
    std::memcpy(&in4->sin_addr, address.ip.data(), 4);
    name.bytes = sizeof *in4;
  }
  return name;
}

// An abstract name begins with a zero byte and belongs to no file.
SocketName nameOf(const std::string& text) noexcept {
  SocketName name;
  auto* un = reinterpret_cast<sockaddr_un*>(&name.storage);
  un->sun_family = AF_UNIX;
  const size_t bytes = std::min(text.size(), sizeof un->sun_path - 1);
  std::memcpy(un->sun_path + 1, text.data(), bytes);
  name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return name;
}

Address addressOf(const SocketName& name) noexcept {
  Address address;
  if (name.storage.ss_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&name.storage);
    address.v6 = true;
    address.port = ntohs(in6->sin6_port);
    address.scope = in6->sin6_scope_id;
    std::memcpy(address.ip.data(), &in6->sin6_addr, 16);
  } else {
    const auto* in4 = reinterpret_cast<const sockaddr_in*>(&name.storage);
    address.port = ntohs(in4->sin_port);
    std::memcpy(address.ip.data(), &in4->sin_addr, 4);
  }
  return address;
}

void set(int fd, int level, int option, int value) noexcept { ::setsockopt(fd, level, option, &value, sizeof value); }

// Lets go of the descriptor without losing errno.
UniqueFd failed(UniqueFd& fd) noexcept {
  const int kept = errno;
  fd.reset();
  errno = kept;
  return {};
}

UniqueFd listenAt(UniqueFd fd, const SocketName& name) noexcept {
  if (!fd) return {};
  if (::bind(fd.get(), name.get(), name.bytes) != 0 || ::listen(fd.get(), kBacklog) != 0) return failed(fd);
  return fd;
}

UniqueFd dialAt(UniqueFd fd, const SocketName& name) noexcept {
  if (!fd) return {};
  if (::connect(fd.get(), name.get(), name.bytes) != 0 && errno != EINPROGRESS && errno != EINTR) return failed(fd);
  return fd;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File opened(const char* path) noexcept { return {std::fopen(path, "re"), std::fclose}; }

uid_t overflowUser() noexcept {
  constexpr uid_t kUsual = 65534;
  uid_t user = kUsual;
  const File file = opened("/proc/sys/kernel/overflowuid");
  return file && std::fscanf(file.get(), "%u", &user) == 1 ? user : kUsual;
}

// Each line: the first number here, the first outside, how many.
bool mapsAllUsers() noexcept {
  constexpr uint64_t kAll = 0xffffffff;  // the last number is nobody's
  const File map = opened("/proc/self/uid_map");
  uint64_t mapped = 0;
  for (uint32_t length = 0; map && std::fscanf(map.get(), "%*u %*u %u", &length) == 1;) mapped += length;
  return mapped >= kAll;
}

std::optional<ucred> peerOf(int fd) noexcept {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return std::nullopt;
  return who;
}

}  // namespace

UniqueFd listenTcp(const Address& address, bool dual) noexcept {
  UniqueFd fd(::socket(address.v6 ? AF_INET6 : AF_INET, kStreamType, 0));
  if (!fd) return {};
  // A port that lately served another job may be taken over; two listeners at once still exclude each other.
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  chooseCongestion(fd.get());
  if (address.v6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, dual ? 0 : 1);
  return listenAt(std::move(fd), nameOf(address));
}

uint16_t portOf(int fd) noexcept {
  SocketName name;
  name.bytes = sizeof name.storage;
  return ::getsockname(fd, name.get(), &name.bytes) == 0 ? addressOf(name).port : 0;
}

UniqueFd listenUnix(const std::string& text) noexcept {
  return listenAt(UniqueFd(::socket(AF_UNIX, kStreamType, 0)), nameOf(text));
}

UniqueFd dialTcp(const Address& address) noexcept {
  UniqueFd fd(::socket(address.v6 ? AF_INET6 : AF_INET, kStreamType, 0));
  if (!fd) return {};
  setNoDelay(fd.get());
  chooseCongestion(fd.get());
  return dialAt(std::move(fd), nameOf(address));
}

UniqueFd dialUnix(const std::string& text) noexcept {
  return dialAt(UniqueFd(::socket(AF_UNIX, kStreamType, 0)), nameOf(text));
}

int pendingError(int fd) noexcept {
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

bool isUnix(int fd) noexcept {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

std::string describePeer(int fd) {
  if (isUnix(fd)) {
    const auto who = peerOf(fd);
    return who ? fmt::format("local process {} of user {}", who->pid, who->uid) : "a local process";
  }
  SocketName name;
  name.bytes = sizeof name.storage;
  return ::getpeername(fd, name.get(), &name.bytes) == 0 ? toString(addressOf(name)) : "a peer that is gone";
}

// A socket for both families shows IPv4 as "::ffff:a.b.c.d" (RFC 4291, 2.5.5.2).
std::string neighbourhoodOf(const Address& address) {
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const auto* ip = address.ip.data();
  const bool mapped = address.v6 && std::equal(kMapped.begin(), kMapped.end(), ip);
  if (address.v6 && !mapped) {
    const bool loopback = ip[15] == 1 && std::all_of(ip, ip + 15, [](uint8_t byte) { return byte == 0; });
    return loopback ? std::string() : std::string(ip, ip + 8);
  }
  if (mapped) ip += kMapped.size();
  return ip[0] == 127 ? std::string() : std::string(ip, ip + 4);
}

std::string neighbourhoodOf(int fd) {
  SocketName name;
  name.bytes = sizeof name.storage;
  if (isUnix(fd) || ::getpeername(fd, name.get(), &name.bytes) != 0) return {};
  return neighbourhoodOf(addressOf(name));
}

bool sameUser(int fd) noexcept {
  const auto who = peerOf(fd);
  return who && (who->uid == ::geteuid() || who->uid == 0);
}

bool tellsUsersApart() noexcept { return ::geteuid() != overflowUser() || mapsAllUsers(); }

// Who has just bound a name of ours listens at once: a little patience tells that from a name that is merely held.
std::optional<ucred> holderOf(const std::string& unixName) noexcept {
  constexpr int kLooks = 10;
  constexpr std::chrono::milliseconds kBetween(2);
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetween);
    if (const UniqueFd fd = dialUnix(unixName)) return peerOf(fd.get());
  }
  return std::nullopt;
}

bool looksLikeThisUser(const std::optional<ucred>& holder) noexcept { return holder && holder->uid == ::geteuid(); }

bool isOfThisUser(const std::optional<ucred>& holder) noexcept {
  return looksLikeThisUser(holder) && tellsUsersApart();
}

void setNoDelay(int fd) noexcept { set(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

// The system counts in seconds when it probes, and the user timeout (RFC 5482) also bounds the probes.
void limitSilence(int fd, std::chrono::milliseconds span) noexcept {
  const auto ms = static_cast<int>(std::clamp<int64_t>(span.count(), 1, int64_t{24} * 3600 * 1000));
  const int seconds = std::max(1, ms / 1000);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 4));
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

}  // namespace tutti
