#include "net/congestion.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <fstream>

#include "base/error.h"
#include "base/plain_text.h"
#include "base/trimmed.h"
#include "process/fd.h"

namespace tutti {
namespace {

constexpr size_t kMostLetters = 16;  // TCP_CA_NAME_MAX of linux/tcp.h

bool set(int fd, std::string_view name) noexcept {
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

using Name = std::array<char, kMostLetters + 1>;
Name nameOf(int fd) noexcept {
  Name name{};
  socklen_t bytes = kMostLetters;
  ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes);
  return name;
}

bool isPacedByMeasuring(int fd) noexcept { return std::string_view(nameOf(fd).data()).starts_with("bbr"); }

std::string allowedHere() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  std::string line;
  return std::getline(file, line) ? line : "not known";
}

}  // namespace

std::string checkedCongestion(std::string_view text) {
  std::string name(trimmed(text));
  if (name.empty()) return name;
  if (name.size() < kMostLetters)
    for (const int family : {AF_INET, AF_INET6}) {
      const UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (socket && set(socket.get(), name)) return name;
    }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no congestion control that TCP has here, or none that this process may use; those "
                          "that it may use are: {}",
                          plainText(name, 80), allowedHere()));
}

void chooseCongestion(int fd) noexcept {
  if (isPacedByMeasuring(fd)) set(fd, "cubic") || set(fd, "reno");
}

void setCongestion(int fd, std::string_view checked) noexcept {
  if (!checked.empty()) set(fd, checked);
}

std::string congestionOf(int fd) { return nameOf(fd).data(); }

}  // namespace tutti
