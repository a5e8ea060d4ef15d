// A kernel that waits can ask nobody why nothing comes. For a call that stands still on the GPU the rank that it waits
// for is asked here, as calls on the host do by themselves: so a rank that has left, or is in another call, ends it
// with an error, and not only its deadline.
#pragma once
#include <chrono>
#include <memory>
#include <optional>

#include "comm/device_record.h"
#include "comm/watch.h"

namespace tutti::comm {

class Communicator;

class DeviceWatch {
 public:
  explicit DeviceWatch(Communicator& communicator) : communicator_(communicator) {}
  // Every millisecond or so, by one thread. `overNetwork`: see Watch.
  void look(const std::optional<StandingCall>& now, bool overNetwork) noexcept;

 private:
  bool moved(const std::optional<StandingCall>& now);
  void ask(bool overNetwork);

  Communicator& communicator_;
  std::optional<StandingCall> last_;
  std::chrono::steady_clock::time_point since_;
  std::unique_ptr<Watch> watch_;  // of last_
  bool told_ = false;
};

}  // namespace tutti::comm
