#include "proof/trace.h"

#include <fmt/format.h>

namespace tutti::proof {
namespace {

bool sums(Collective collective) { return reduces(collective) || collective == Collective::kBarrier; }

bool exchanges(Collective collective) { return plainOf(collective) == Collective::kAllToAll; }

}  // namespace

Trace::Trace(std::span<const Schedule> schedules, const Wiring& wiring, int depth, int rounds, Problems& problems)
    : schedules_(schedules),
      wiring_(wiring),
      depth_(static_cast<uint64_t>(depth)),
      rounds_(rounds),
      problems_(problems),
      values_(static_cast<int>(schedules.size())),
      collective_(schedules[0].collective),
      slots_(wiring.links.size()),
      posted_(wiring.links.size()),
      taken_(wiring.links.size()) {
  for (const Schedule& schedule : schedules) {
    const size_t held = small(schedule, Operand::Kind::kOutput) ? 1 : schedule.segments;
    outputs_.emplace_back(held * static_cast<size_t>(rounds), SymbolicValues::kNothing);
    scratches_.emplace_back(schedule.scratches);
  }
}

// Whether the buffer holds the rank's own segment only.
bool Trace::small(const Schedule& schedule, Operand::Kind kind) const noexcept {
  if (schedule.map != SegmentMap::kPerRank) return false;
  switch (plainOf(collective_)) {
    case Collective::kAllGather:
    case Collective::kGather:
      return kind == Operand::Kind::kInput;
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return kind == Operand::Kind::kOutput;
    default:
      return false;
  }
}

Trace::Promise Trace::promiseOf(int rank, uint32_t segment) const {
  const Schedule& schedule = schedules_[rank];
  const auto owner = static_cast<int>(segment);
  switch (plainOf(collective_)) {
    case Collective::kAllReduce:
      return {true, true, -1};
    case Collective::kReduce:
      return {rank == schedule.root, true, -1};
    case Collective::kReduceScatter:
      return {owner == rank, true, -1};
    case Collective::kAllGather:
    case Collective::kAllToAll:
      return {true, false, owner};
    case Collective::kBroadcast:
      return {true, false, schedule.root};
    case Collective::kGather:
      return {rank == schedule.root, false, owner};
    case Collective::kScatter:
      return {owner == rank, false, schedule.root};
    default:  // a message
      break;
  }
  if (!schedule.inPeers.empty()) return {true, false, schedule.inPeers[0]};
  return {schedule.outPeers.empty() && !schedule.steps.empty(), false, rank};
}

SymbolicValues::Id& Trace::output(int rank, uint32_t segment, int round) {
  const Schedule& schedule = schedules_[rank];
  if (small(schedule, Operand::Kind::kOutput)) return outputs_[rank][static_cast<size_t>(round)];
  return outputs_[rank][static_cast<size_t>(round) * schedule.segments + segment];
}

void Trace::execute(int rank, const Step& step, int round) {
  if (problems_.full()) return;
  checkPlaces(rank, step);
  const Schedule& schedule = schedules_[rank];
  for (Operand source : schedule.from(step)) {
    if (source.kind() == Operand::Kind::kScratch) {
      checkHolds(rank, step, round, source, scratches_[rank][source.index()]);
    } else if (source.isLink()) {
      const uint32_t link = wiring_.in[rank][source.index()];
      checkHolds(rank, step, round, source, slots_[link][taken_[link] % depth_]);
    }
  }
  results_.clear();
  for (uint32_t i = 0; i < step.span; ++i) results_.push_back(combine(rank, step, round, i));
  for (Operand source : schedule.from(step)) {
    if (source.isLink()) ++taken_[wiring_.in[rank][source.index()]];
  }
  store(rank, step, round);
}

// A small buffer has no other segment than the own, and only some ranks have the large one.
void Trace::checkPlaces(int rank, const Step& step) {
  const Schedule& schedule = schedules_[rank];
  const Collective plain = plainOf(collective_);
  const auto check = [&](Operand operand) {
    if (operand.kind() != Operand::Kind::kInput && operand.kind() != Operand::Kind::kOutput) return;
    const bool own = step.segment == static_cast<uint32_t>(rank) && step.span == 1;
    const char* name = operand.kind() == Operand::Kind::kInput ? "input" : "output";
    if (small(schedule, operand.kind()) && !own) {
      complain(rank, step, -1, fmt::format("uses a segment of its {} that is not its own", name));
    }
    const bool atRoot = operand.kind() == Operand::Kind::kInput
                            ? plain == Collective::kBroadcast || plain == Collective::kScatter
                            : plain == Collective::kReduce || plain == Collective::kGather;
    if (atRoot && rank != schedule.root) {
      complain(rank, step, -1, fmt::format("uses the {}, which only the root has", name));
    }
  };
  for (Operand operand : schedule.from(step)) check(operand);
  for (Operand operand : schedule.to(step)) check(operand);
}

// A slot must carry the segments and the round that its reader works on. In an all-to-all the two ends number the
// segment differently: the sender by the receiver, the receiver by the sender.
void Trace::checkHolds(int rank, const Step& step, int round, Operand source, const Chunks& held) {
  if (held.round < 0) {
    complain(rank, step, round, "reads a scratch buffer that nobody has written");
    return;
  }
  const bool isScratch = !source.isLink();
  bool right = held.round == round && (isScratch ? held.span >= step.skip + step.span : held.span == step.span);
  if (exchanges(collective_) && source.isLink()) {
    const int sender = schedules_[rank].inPeers[source.index()];
    right = right && held.segment == static_cast<uint32_t>(rank) && step.segment == static_cast<uint32_t>(sender);
  } else {
    const uint32_t skipped = isScratch ? step.skip : 0;
    right = right && (held.segment + skipped) % schedules_[rank].segments == step.segment;
  }
  if (right) return;
  complain(rank, step, round,
           fmt::format("reads a {} that carries segment {} (span {}) of round {}", source.isLink() ? "slot" : "scratch",
                       held.segment, held.span, held.round));
}

SymbolicValues::Id Trace::readInput(int rank, uint32_t segment, int round) {
  const Schedule& schedule = schedules_[rank];
  if (small(schedule, Operand::Kind::kOutput) && segment != static_cast<uint32_t>(rank)) return values_.leaf(rank);
  const Id inPlace = output(rank, segment, round);
  const bool unchanged = inPlace == SymbolicValues::kNothing || (!sums(collective_) && inPlace == values_.leaf(rank));
  if (!unchanged) {
    problems_.add(
        fmt::format("rank {} reads segment {} of its input in round {} after it has written its output there: "
                    "wrong in place",
                    rank, segment, round));
  }
  return values_.leaf(rank);
}

SymbolicValues::Id Trace::read(int rank, const Step& step, int round, Operand source, uint32_t i) {
  const uint32_t segment = (step.segment + i) % schedules_[rank].segments;
  switch (source.kind()) {
    case Operand::Kind::kInput:
      return readInput(rank, segment, round);
    case Operand::Kind::kOutput:
      return output(rank, segment, round);
    case Operand::Kind::kScratch: {
      const Chunks& held = scratches_[rank][source.index()];
      return step.skip + i < held.span ? held.at(step.skip + i) : SymbolicValues::kNothing;
    }
    case Operand::Kind::kLink:
      break;
  }
  const uint32_t link = wiring_.in[rank][source.index()];
  const Chunks& held = slots_[link][taken_[link] % depth_];
  return i < held.span ? held.at(i) : SymbolicValues::kNothing;
}

SymbolicValues::Id Trace::combine(int rank, const Step& step, int round, uint32_t i) {
  const auto from = schedules_[rank].from(step);
  sources_.clear();
  for (Operand source : from) {
    const Id id = read(rank, step, round, source, i);
    if (id == SymbolicValues::kNothing) complain(rank, step, round, "reads memory that nobody has written");
    if (from.size() > 1 && values_.finalised(id)) complain(rank, step, round, "reduces a final value further");
    sources_.push_back(id);
  }
  Id result = values_.reduce(sources_);
  if (values_.doubled(result)) complain(rank, step, round, "makes a value with " + values_.describe(result));
  if ((step.flags & kFinalise) == 0) return result;
  if (values_.finalised(result) || !values_.complete(result)) {
    complain(rank, step, round, "finalises a value with " + values_.describe(result));
  }
  return values_.finalise(sources_);
}

void Trace::store(int rank, const Step& step, int round) {
  const Schedule& schedule = schedules_[rank];
  for (Operand destination : schedule.to(step)) {
    if (destination.kind() == Operand::Kind::kOutput) {
      for (uint32_t i = 0; i < step.span; ++i) {
        output(rank, (step.segment + i) % schedule.segments, round) = results_[i];
      }
    } else if (destination.kind() == Operand::Kind::kScratch) {
      storeChunks(scratches_[rank][destination.index()], step, round);
    } else {
      const uint32_t link = wiring_.out[rank][destination.index()];
      if (slots_[link].empty()) slots_[link].resize(depth_);
      storeChunks(slots_[link][posted_[link]++ % depth_], step, round);
    }
  }
}

void Trace::storeChunks(Chunks& chunks, const Step& step, int round) {
  chunks.segment = step.segment;
  chunks.span = step.span;
  chunks.round = round;
  chunks.first = results_[0];
  if (step.span > 1) {
    chunks.all = results_;
  } else {
    chunks.all.clear();
  }
}

void Trace::checkResults() {
  for (size_t link = 0; link < posted_.size(); ++link) {
    if (posted_[link] == taken_[link]) continue;
    const auto& ends = wiring_.links[link];
    problems_.add(fmt::format("the link from rank {} to rank {} ends with {} slots that nobody has taken", ends.sender,
                              ends.receiver, posted_[link] - taken_[link]));
  }
  for (int round = 0; round < rounds_ && !problems_.full(); ++round) {
    for (uint32_t segment = 0; segment < schedules_[0].segments; ++segment) {
      for (size_t rank = 0; rank < schedules_.size(); ++rank) checkResult(static_cast<int>(rank), segment, round);
      if (promiseOf(0, segment).summed) checkSameOrder(segment, round);
    }
  }
}

void Trace::checkResult(int rank, uint32_t segment, int round) {
  const Schedule& schedule = schedules_[rank];
  if (small(schedule, Operand::Kind::kOutput) && segment != static_cast<uint32_t>(rank)) return;
  const Promise promise = promiseOf(rank, segment);
  const Id id = output(rank, segment, round);
  bool right = id == SymbolicValues::kNothing;
  if (promise.written) {
    right = promise.summed ? id != SymbolicValues::kNothing && values_.complete(id) && values_.finalised(id)
                           : id == values_.leaf(promise.from);
  }
  if (right) return;
  const std::string due = !promise.written ? "nothing"
                          : promise.summed ? "each rank once, finalised"
                                           : fmt::format("the input of rank {}", promise.from);
  problems_.add(fmt::format("rank {} ends with {} in segment {} of its output in round {}; it should have {}", rank,
                            values_.describe(id), segment, round, due));
}

void Trace::checkSameOrder(uint32_t segment, int round) {
  Id first = SymbolicValues::kNothing;
  for (size_t rank = 0; rank < schedules_.size(); ++rank) {
    const auto at = static_cast<int>(rank);
    if (small(schedules_[rank], Operand::Kind::kOutput) || !promiseOf(at, segment).written) continue;
    const Id id = output(at, segment, round);
    if (first == SymbolicValues::kNothing) first = id;
    if (id == first) continue;
    problems_.add(fmt::format(
        "rank {} reduces segment {} in another order, or rounds it elsewhere, than a rank before it", rank, segment));
    return;
  }
}

void Trace::complain(int rank, const Step& step, int round, const std::string& what) {
  const auto number = &step - schedules_[rank].steps.data();
  const std::string when = round < 0 ? "" : fmt::format(", round {}", round);
  problems_.add(
      fmt::format("rank {}, step {} (segment {}, span {}{}) {}", rank, number, step.segment, step.span, when, what));
}

}  // namespace tutti::proof
