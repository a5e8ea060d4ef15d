#include "link/ear.h"

#include <pthread.h>
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

// Its caller may be a thread that is cancelled here, in the middle of a call.
void nudge(const Doorbell& bell) noexcept {
  int before = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  if (const UniqueFd socket(newSocket()); socket) {
    const Address address(bell);
    ::sendto(socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, address.get(), address.length);
  }
  ::pthread_setcancelstate(before, nullptr);
}

}  // namespace tutti::link
