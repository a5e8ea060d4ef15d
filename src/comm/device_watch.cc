#include "comm/device_watch.h"

#include "comm/communicator.h"

namespace tutti::comm {
namespace {

// The words of a kernel say whom it waited for last, not that it still does: what has moved so lately may go on.
constexpr std::chrono::seconds kStandsStill(2);

}  // namespace

bool DeviceWatch::moved(const std::optional<StandingCall>& now) {
  const bool same = now && last_ && now->token == last_->token && now->waitingFor == last_->waitingFor &&
                    now->position == last_->position;
  if (same) return false;
  watch_.reset();
  last_ = now;
  since_ = std::chrono::steady_clock::now();
  return true;
}

void DeviceWatch::look(const std::optional<StandingCall>& now, bool overNetwork) noexcept {
  if (told_) return;
  try {
    if (!moved(now) && std::chrono::steady_clock::now() - since_ >= kStandsStill) ask(overNetwork);
  } catch (const Error& error) {
    told_ = true;
    communicator_.fail(error);
  } catch (const std::exception&) {  // no memory: it is tried again
  }
}

void DeviceWatch::ask(bool overNetwork) {
  if (!watch_) watch_ = std::make_unique<Watch>(communicator_, last_->call, last_->number, false);
  watch_->look(last_->waitingFor, last_->position, overNetwork,
               [this] { return communicator_.rankName(last_->waitingFor); });
}

}  // namespace tutti::comm
