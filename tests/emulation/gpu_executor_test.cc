// Whoever hears what happens on a GPU may turn to the communicator, whatever it holds.
#include "gpu/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

#include "comm/self.h"
#include "join/open_root.h"
#include "support/join_plane.h"
#include "support/patience.h"
#include "topology/peer_info.h"

namespace tutti::gpu {
namespace {

// A rank that is alone on its GPU.
class LoneSide {
 public:
  explicit LoneSide(GpuFaults faults)
      : team_(joinPlane(request()), std::make_shared<comm::Recorder>(), config_),
        side_(team_, launcher_, std::move(faults)) {}
  GpuExecutor& operator*() noexcept { return side_; }
  GpuExecutor* operator->() noexcept { return &side_; }

 private:
  static comm::Config onGpu() {
    comm::Config config = comm::Config::fromEnvironment();
    config.device = 0;
    config.deviceSlotBytes = 1 << 20;
    return config;
  }
  control::JoinRequest request() const {
    control::JoinRequest request;
    request.deadline = Deadline::in(3 * test::longWait());
    request.network = self_.network;
    request.id = control::openRoot(self_.network, request.deadline);
    request.info = self_.info;
    return request;
  }

  const comm::Config config_ = onGpu();
  const comm::Self self_ = comm::Self::find(config_);
  comm::Team team_;
  const struct NoLauncher final : comm::GroupLauncher {
    bool runs() const noexcept override { return false; }
    void launch(std::span<comm::PendingCall>) const override {}
  } launcher_;
  GpuExecutor side_;
};

// Has another thread ask something of a side, and says whether it came through.
class Asker {
 public:
  ~Asker() {
    if (thread_.joinable()) thread_.join();
  }
  // Once: later calls do nothing.
  void ask(GpuExecutor& side) {
    if (thread_.joinable()) return;
    thread_ = std::thread([&] {
      side.note();
      through_ = true;
    });
    for (const Deadline deadline = Deadline::in(test::longWait()); !through_ && !deadline.passed();)
      std::this_thread::yield();
    cameThrough_ = through_ ? kYes : kNo;
  }
  bool cameThrough() const {
    for (const Deadline deadline = Deadline::in(3 * test::longWait()); cameThrough_ == kOpen && !deadline.passed();)
      std::this_thread::yield();
    return cameThrough_ == kYes;
  }

 private:
  enum State { kOpen, kYes, kNo };
  std::thread thread_;
  std::atomic<bool> through_{false};
  std::atomic<State> cameThrough_{kOpen};
};

comm::Call barrier() {
  comm::Call call;
  call.collective = Collective::kBarrier;
  call.count = 1;
  return call;
}

// What hears of trouble may wait for whatever another thread does here, or end the communicator.
TEST(GpuExecutor, HoldsNothingWhileItTells) {
  Asker ofTrouble, ofStanding;
  std::atomic<GpuExecutor*> there{nullptr};
  LoneSide side({.kernel = [&](const device::Report&) { ofTrouble.ask(*there); },
                 .cutOff = [](int, const std::string&) {},
                 .lie = [](int, const std::string&) {},
                 .standing = [&](const auto&, bool) { ofStanding.ask(*there); }});
  there = &*side;
  side->beginGroup();
  const comm::Call call = barrier();
  const DeviceProgram& program = side->programFor(call);
  const device::KernelWork work = side->workFor(call, program, false);
  side->launched(call, program, work);
  EXPECT_TRUE(ofStanding.cameThrough());
  work.seat.report->fault = device::Fault::kDeadline;
  work.seat.report->peer = 0;
  std::atomic_ref(work.seat.report->ready).store(1, std::memory_order_release);  // as a kernel does
  EXPECT_TRUE(ofTrouble.cameThrough());
}

// A kernel says it once: were nobody told, whoever waits for the call would wait for ever.
TEST(GpuExecutor, StopsTheTeamWithoutMemoryForWords) {
  LoneSide side({.kernel = [](const device::Report&) { throw std::bad_alloc(); },
                 .cutOff = [](int, const std::string&) {},
                 .lie = [](int, const std::string&) {},
                 .standing = [](const auto&, bool) {}});
  side->beginGroup();
  const comm::Call call = barrier();
  const DeviceProgram& program = side->programFor(call);
  const device::KernelWork work = side->workFor(call, program, false);
  side->launched(call, program, work);
  work.seat.report->fault = device::Fault::kDeadline;
  std::atomic_ref(work.seat.report->ready).store(1, std::memory_order_release);
  for (const Deadline deadline = Deadline::in(test::longWait()); !side->team().broken() && !deadline.passed();)
    std::this_thread::yield();
  EXPECT_TRUE(side->team().broken());
}

}  // namespace
}  // namespace tutti::gpu
