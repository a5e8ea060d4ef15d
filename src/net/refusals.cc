#include "net/refusals.h"

#include "process/log.h"

namespace tutti {
namespace {

constexpr std::chrono::seconds kCountTime(1);

// Without the port, which differs from call to call. Local processes are one address together.
std::string addressOf(const std::string& peer) {
  const size_t port = peer.rfind(':');
  return port == std::string::npos ? "this host" : peer.substr(0, port);
}

}  // namespace

void Refusals::note(std::string_view peer, std::string_view why) noexcept {
  try {
    tell(std::string(peer), std::string(why));
  } catch (const std::exception&) {  // no memory for the words
    ++counted_;
  }
}

void Refusals::tell(const std::string& peer, const std::string& why) {
  const std::string address = addressOf(peer);
  if (lines_.size() < kMaxAddresses || lines_.contains(address)) {
    if (int& lines = lines_[address]; lines < kLinesPerAddress) {
      const bool last = ++lines == kLinesPerAddress;
      return log::warn("refused {}: {}{}", peer, why, last ? " (from now on, callers from there are counted)" : "");
    }
  }
  last_ = fmt::format("{}: {}", peer, why);
  if (timer_ == 0) timer_ = reactor_.after(kCountTime, [this] { flush(); });
  ++counted_;
}

void Refusals::flush() {
  reactor_.cancel(timer_);
  timer_ = 0;
  if (counted_ > 0) log::warn("refused {} more callers; the last was {}", counted_, last_);
  counted_ = 0;
}

}  // namespace tutti
