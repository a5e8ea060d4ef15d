#include "wire/prober.h"

namespace tutti::control {

// Whoever is told may destroy this object: what is called is moved out first.
Prober::Prober(Reactor& reactor, Dial::Target target, std::chrono::milliseconds patience, Won won, Gone gone)
    : reactor_(reactor), won_(std::move(won)), gone_(std::move(gone)) {
  dial_ = Dial::start(
      reactor_, std::move(target),
      [this](std::shared_ptr<Line> line) {
        reactor_.cancel(patience_);
        const auto tell = std::move(won_);
        tell(std::move(line));
      },
      [this](const std::string& why) { lost(why); });
  try {
    patience_ = reactor_.after(
        patience, [this, patience] { giveUp(fmt::format("did not answer for {} ms ({})", patience.count(), last_)); });
  } catch (const std::exception&) {  // no memory: the dial has nobody to tell
    dial_->cancel();
    throw;
  }
}

Prober::~Prober() {
  reactor_.cancel(patience_);
  dial_->cancel();
}

void Prober::lost(const std::string& why) {
  last_ = why;
  if (dial_->refused()) giveUp("has ended, or its owner has left the communicator (" + why + ")");
}

void Prober::giveUp(const std::string& why) {
  reactor_.cancel(patience_);
  dial_->cancel();
  const auto tell = std::move(gone_);
  tell(why);
}

}  // namespace tutti::control
