// A rank whose kernels run one call at a time, launched by hand, over one link to a peer that the test plays.
#pragma once
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "device/program.h"
#include "kernels/cuda/collective.h"
#include "team/call.h"

namespace tutti::test {

// All in the memory of the host, which an emulated GPU reads as its own.
class LoneRank {
 public:
  // Among `size` ranks; `number`: of its first operation.
  LoneRank(int size, uint32_t slotBytes, uint32_t depth, uint32_t number = 0)
      : memory_(link::Fifo::bytesFor(slotBytes, depth) + kLine),
        ends_(static_cast<size_t>(kProtocols * size)),
        operations_(number) {
    auto* const line =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory_.data()) + kLine - 1) / kLine * kLine);
    fifo_ = link::Fifo::over(line, slotBytes, depth);
    seat_.sendEnds = seat_.recvEnds = ends_.data();
    seat_.operations = &operations_;
    seat_.reporting = &reporting_;
    seat_.directSlots = &directSlots_;
    seat_.abort = &abort_;
    seat_.report = &report_;
    seat_.progress = &progress_;
    seat_.size = size;
  }
  LoneRank(const LoneRank&) = delete;
  LoneRank& operator=(const LoneRank&) = delete;

  device::DeviceComm& seat() noexcept { return seat_; }
  uint32_t operation() const noexcept { return operations_; }
  // This rank's end of the link, of either direction.
  device::End& open(Protocol protocol, int peer) noexcept {
    device::End& end = this->end(protocol, peer);
    end.fifo = fifo_;
    return end;
  }
  device::End& end(Protocol protocol, int peer) noexcept { return ends_[seat_.endIndex(protocol, 0, peer)]; }

  // Runs the call over one channel, and waits until the kernel has left. Returns what it met.
  device::Report run(const schedule::Schedule& schedule, const engine::LaneWork& plain, Protocol protocol) {
    device::KernelLaunch launch;
    launch.count = 1;
    launch.works[0] = workOf(schedule, plain, protocol);
    EXPECT_EQ(cuda::launchCollective(launch, 1, nullptr), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    reporting_ = 0;
    return std::exchange(report_, {});
  }

 private:
  static constexpr size_t kLine = 128;

  // As gpu::GpuExecutor fills it, of a schedule that is on the GPU already.
  device::KernelWork workOf(const schedule::Schedule& schedule, const engine::LaneWork& plain,
                            Protocol protocol) const {
    device::KernelWork work;
    work.seat = seat_;
    work.program.steps = schedule.steps.data();
    work.program.operands = schedule.operands.data();
    work.program.inPeers = schedule.inPeers.data();
    work.program.outPeers = schedule.outPeers.data();
    work.program.inCount = static_cast<uint16_t>(schedule.inPeers.size());
    work.program.outCount = static_cast<uint16_t>(schedule.outPeers.size());
    work.program.stepCount = static_cast<uint32_t>(schedule.steps.size());
    work.input = plain.input;
    work.output = plain.output;
    work.layout = plain.layout;
    work.arithmetic = plain.arithmetic;
    work.fingerprint = plain.fingerprint;
    work.protocol = protocol;
    return work;
  }

  std::vector<std::byte> memory_;
  std::vector<device::End> ends_;
  link::Fifo fifo_;
  device::DeviceComm seat_;
  device::Report report_;
  device::Progress progress_;
  uint32_t operations_, reporting_ = 0, directSlots_ = 0, abort_ = 0;
};

}  // namespace tutti::test
