#include "support/interloper.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "support/oob_pair.h"

namespace tutti::test {

Interloper::Interloper(UniqueFd left, UniqueFd right, Tamper tamper)
    : left_(std::move(left)), right_(std::move(right)), tamper_(tamper), thread_([this] { run(); }) {}

Interloper::~Interloper() {
  stop_ = true;
  thread_.join();
}

void Interloper::run() {
  pollfd ends[2] = {{left_.get(), POLLIN, 0}, {right_.get(), POLLIN, 0}};
  bool alive = true;
  while (alive && !stop_) {
    if (::poll(ends, 2, 20) <= 0) continue;
    if (ends[0].revents != 0) alive = pass(left_.get(), right_.get(), true);
    if (alive && ends[1].revents != 0) alive = pass(right_.get(), left_.get(), false);
  }
  ::shutdown(left_.get(), SHUT_RDWR);
  ::shutdown(right_.get(), SHUT_RDWR);
}

// False when there is no more to pass.
bool Interloper::pass(int from, int to, bool bends) {
  std::vector<std::byte> chunk(16 << 10);
  const ssize_t n = ::recv(from, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) return false;
  chunk.resize(static_cast<size_t>(n));
  const bool goesOn = !bends || bend(chunk);
  for (size_t sent = 0; sent < chunk.size() && !stop_;) {
    const ssize_t m = ::send(to, chunk.data() + sent, chunk.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (m < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (m > 0) sent += static_cast<size_t>(m);
    if (m < 0) {
      pollfd room{to, POLLOUT, 0};
      ::poll(&room, 1, 20);
    }
  }
  if (bends) passed_ += chunk.size();
  return goesOn;
}

// Moves the bytes before `at` from what is held back to `chunk`.
void Interloper::passUntil(size_t at, std::vector<std::byte>& chunk) {
  const size_t free = std::min(held_.size(), at - std::min(at, seen_));
  const auto end = held_.begin() + static_cast<ptrdiff_t>(free);
  chunk.insert(chunk.end(), held_.begin(), end);
  held_.erase(held_.begin(), end);
  seen_ += free;
}

// Puts into `chunk` what goes on. Bytes are held back only from `at` on, until the whole range is there.
bool Interloper::bend(std::vector<std::byte>& chunk) {
  if (done_ || tamper_.what == Tampering::kNone) return true;
  held_.insert(held_.end(), chunk.begin(), chunk.end());
  chunk.clear();
  passUntil(tamper_.at, chunk);
  const bool swaps = tamper_.what == Tampering::kSwap;
  const auto bytes = static_cast<ptrdiff_t>(tamper_.bytes), range = swaps ? 2 * bytes : bytes;
  const auto holds = [&] { return std::ssize(held_) >= range; };
  // Two bytes that a cipher made are the same once in 256 times.
  while (swaps && holds() && std::equal(held_.begin(), held_.begin() + bytes, held_.begin() + bytes))
    passUntil(seen_ + 1, chunk);
  if (!holds()) return true;
  const auto first = held_.begin(), last = first + bytes;
  if (tamper_.what == Tampering::kTruncate) return false;
  if (tamper_.what == Tampering::kFlip) *first ^= std::byte(1u << tamper_.bit);
  if (tamper_.what == Tampering::kRepeat) chunk.insert(chunk.end(), first, last);
  if (swaps) std::rotate(first, last, first + range);
  chunk.insert(chunk.end(), tamper_.what == Tampering::kDrop ? last : first, held_.end());
  done_ = true;
  return true;
}

InterceptedPair::InterceptedPair(Tamper tamper) {
  auto [near, left1] = tcpPair();
  auto [right1, far] = tcpPair();
  left = std::move(near);
  right = std::move(far);
  interloper = std::make_unique<Interloper>(std::move(left1), std::move(right1), tamper);
}

}  // namespace tutti::test
