#include "link/ear.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/random.h"

namespace tutti::link {
namespace {

constexpr char kPrefix[] = "tutti-bell-";
// Any user of the host may leave words, without a pause: then the ear is not empty, and is seen to again.
constexpr int kMostWords = 64;

struct Address {
  sockaddr_un name{};
  socklen_t length;

  explicit Address(const Doorbell& bell) noexcept {
    name.sun_family = AF_UNIX;
    char* const path = name.sun_path + 1;  // the leading zero makes it abstract
    std::memcpy(path, kPrefix, sizeof kPrefix - 1);
    std::memcpy(path + sizeof kPrefix - 1, bell.ear, sizeof bell.ear);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + sizeof kPrefix - 1 + sizeof bell.ear);
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&name); }
};

int newSocket() noexcept { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

}  // namespace

Ear::Ear(Doorbell& bell) : socket_(newSocket()) {
  if (socket_.get() < 0) throw systemError("cannot make the socket that wakes a rank", errno);
  for (uint64_t& word : bell.ear) word = randomNumber();
  const Address address(bell);
  if (::bind(socket_.get(), address.get(), address.length) != 0)
    throw systemError("cannot name the socket that wakes a rank", errno);
}

void Ear::drain() noexcept {
  char waste;
  for (int i = 0; i < kMostWords && ::recv(socket_.get(), &waste, sizeof waste, MSG_DONTWAIT) >= 0; ++i) {
  }
}

void nudge(const Doorbell& bell) noexcept {
  const int socket = newSocket();
  if (socket < 0) return;
  const Address address(bell);
  ::sendto(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, address.get(), address.length);
  ::close(socket);
}

}  // namespace tutti::link
