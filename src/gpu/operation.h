// An operation on a GPU, for whoever holds a request for it: it has ended when a mark behind its launch has come.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "device/device.h"
#include "device/program.h"
#include "team/operation.h"
#include "team/team.h"

namespace tutti::gpu {

class LaunchedOperation final : public comm::Operation {
 public:
  // `report`: where the kernels of the communicator say what went wrong.
  LaunchedOperation(comm::Team& team, std::shared_ptr<device::Device> device, device::Report& report);

  // In which its launch leaves the mark. Of this operation alone.
  device::LaunchOrder& order() noexcept { return *order_; }
  // That launch has been queued.
  void launched(const comm::Call& call, uint64_t number) noexcept;
  // The GPU has ended all of the communicator's, which is asked nothing any more.
  void close() noexcept;

 private:
  void look() noexcept override;
  bool needsLooks() const noexcept override { return true; }
  bool untold() const noexcept;
  void settle() noexcept;

  std::shared_ptr<device::Device> device_;
  std::unique_ptr<device::LaunchOrder> order_;
  std::mutex mutex_;  // guards what follows
  comm::Team* team_;  // null once that may have gone, as the report
  device::Report& report_;
  bool queued_ = false;
  comm::Call call_;
  uint64_t number_ = 0;
};

inline LaunchedOperation::LaunchedOperation(comm::Team& team, std::shared_ptr<device::Device> device,
                                            device::Report& report)
    : device_(std::move(device)), order_(device_->newOrder()), team_(&team), report_(report) {}

inline void LaunchedOperation::launched(const comm::Call& call, uint64_t number) noexcept {
  take(kRunning);
  std::lock_guard lock(mutex_);
  call_ = call;
  number_ = number;
  queued_ = true;
}

inline void LaunchedOperation::close() noexcept {
  std::lock_guard lock(mutex_);
  if (queued_) settle();
  team_ = nullptr;
}

inline void LaunchedOperation::look() noexcept {
  std::lock_guard lock(mutex_);
  if (queued_ && device_->finished(*order_) && !untold()) settle();
}

// Needs the mutex. A kernel has met something, and ended, and the communicator is about to hear of it.
inline bool LaunchedOperation::untold() const noexcept {
  // Acquire: pairs with the kernel's release.
  return std::atomic_ref(report_.ready).load(std::memory_order_acquire) != 0 && !team_->broken();
}

// Needs the mutex. A kernel that was told to stop ends as others do: what has ended after the communicator failed has
// failed.
inline void LaunchedOperation::settle() noexcept {
  queued_ = false;
  try {
    device_->drain(*order_);
  } catch (const Error& error) {
    return end(kRunning, error);
  }
  if (team_ == nullptr || !team_->broken()) return end(kRunning);
  end(kRunning, errorOrOutOfMemory([this] { return team_->failure(call_.describe(number_)); }));
}

}  // namespace tutti::gpu
