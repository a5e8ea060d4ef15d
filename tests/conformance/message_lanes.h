// A message from one end of a link to the other, by a lane at each.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/lane.h"
#include "schedule/algorithm.h"
#include "team/call.h"

namespace tutti::test {

class MessageLanes {
 protected:
  MessageLanes() = default;
  // The sender's lane of input_ over `out`, or the receiver's to output_ over `in`, which has as many bytes.
  void startLane(bool sends, link::SendEnd& out, link::RecvEnd& in, uint32_t slotBytes, uint64_t number,
                 link::SingleCopy way) {
    comm::Call call;
    call.collective = Collective::kSendRecv;
    call.sends = sends;
    (sends ? call.send = input_.data() : call.recv = output_.data());
    call.count = input_.size();
    engine::Binding& binding = bindings_[sends ? 0 : 1];
    binding = {};
    binding.schedule = sends ? &sends_ : &receives_;
    binding.singleCopy = way;
    if (sends)
      binding.outs = {&out};
    else
      binding.ins = {&in};
    binding.directSlots = &directSlots_;
    binding.prepare(slotBytes);
    lane(sends).start(binding, comm::toWork(call, number, *binding.schedule, slotBytes, 0, 1));
  }
  engine::Lane& lane(bool sends) { return lanes_[sends ? 0 : 1]; }
  engine::LaneState run(bool sends) {
    bool moved = false;
    return lane(sends).run(moved);
  }

  std::vector<std::byte> input_, output_;
  std::atomic<uint64_t> directSlots_{0};

 private:
  const schedule::Schedule sends_ = schedule::buildSend(0, 2, 1), receives_ = schedule::buildReceive(1, 2, 0);
  std::array<engine::Binding, 2> bindings_;
  std::array<engine::Lane, 2> lanes_;
};

}  // namespace tutti::test
