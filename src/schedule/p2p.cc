// Messages between two ranks, as schedules of one step.
//
//   1 --> 3     rank 1 sends, rank 3 receives; no other rank takes part
//
// One step, in which the message is sent once.
#include "schedule/builder.h"

namespace tutti::schedule {
namespace {

Builder messageBuilder(int rank, int size) {
  Shape shape;
  shape.collective = Collective::kSendRecv;
  shape.size = size;
  return Builder(shape, rank, SegmentMap::kSplit, 1);
}

Schedule finish(Builder& builder) {
  Schedule schedule = builder.finish(1);
  schedule.algorithm = Algorithm::kDirect;
  return schedule;
}

}  // namespace

Schedule buildSend(int rank, int size, int peer) {
  Builder builder = messageBuilder(rank, size);
  builder.at(0).from(Operand::input()).toRank(peer).lands();
  return finish(builder);
}

Schedule buildReceive(int rank, int size, int peer) {
  Builder builder = messageBuilder(rank, size);
  builder.at(0).fromRank(peer).to(Operand::output());
  return finish(builder);
}

Schedule buildSelf(int rank, int size) {
  Builder builder = messageBuilder(rank, size);
  builder.at(0).from(Operand::input()).to(Operand::output());
  return finish(builder);
}

}  // namespace tutti::schedule
