#include "unit/schedule_interpreter.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>

namespace tutti::schedule::test {
namespace {

// A sum, and a trace of the order in which it was made and rounded (which must be the same on all ranks that hold it).
struct Value {
  uint64_t sum = 0, order = 0;
  bool operator==(const Value&) const = default;
};

uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

// Odd factors, so that scaling twice, never, or before the end changes every sum modulo 2^64.
constexpr uint64_t kPreScale = 0x1234567, kFinal = 0x7654321;

class Interpreter {
 public:
  Interpreter(std::span<const Schedule> schedules, const Setting& setting)
      : schedules_(schedules), setting_(setting), collective_(schedules[0].collective), random_(setting.seed) {
    const size_t cells = schedules[0].segments * static_cast<size_t>(setting.rounds);
    for (size_t rank = 0; rank < schedules.size(); ++rank) {
      lanes_.push_back({});
      std::vector<Value> input(cells), output(cells, Value{0xbad, 0xbad});
      for (size_t cell = 0; cell < cells; ++cell) input[cell] = original(rank, cell);
      inputs_.push_back(input);
      outputs_.push_back(setting.inPlace ? input : output);
      scratches_.emplace_back(schedules[rank].scratches, std::vector<Value>(schedules[rank].segments));
    }
  }

  std::string run() {
    if (!runLanes()) return "hangs";
    if (!broken_.empty()) return broken_;
    for (const auto& [ends, slots] : links_) {
      if (!slots.empty()) return "leaves a slot behind";
    }
    return checkOutputs();
  }

 private:
  struct Lane {
    int iteration = 0;
    size_t step = 0;
  };

  // Segments of the buffers that are there at all; a small buffer is the own segment of the large one.
  static Value original(uint64_t rank, uint64_t cell) {
    const uint64_t number = scramble(rank << 32 | cell);
    return {number, scramble(number)};
  }
  size_t cellOf(uint32_t segment, int round) const {
    return segment * static_cast<size_t>(setting_.rounds) + static_cast<size_t>(round);
  }
  int roundsOf(uint32_t segment) const {
    if (schedules_[0].map == SegmentMap::kPerRank) return setting_.rounds;
    const int at = static_cast<int>(segment);
    return at < setting_.fullSegments ? setting_.rounds : at == setting_.fullSegments ? 1 : 0;
  }
  bool sums() const { return reduces(collective_) || collective_ == Collective::kBarrier; }

  std::vector<uint32_t> active(const Schedule& schedule, const Step& step, int round) const {
    std::vector<uint32_t> segments;
    for (uint32_t i = 0; i < step.span; ++i) {
      const uint32_t segment = (step.segment + i) % schedule.segments;
      if (round < roundsOf(segment)) segments.push_back(segment);
    }
    return segments;
  }

  bool runLanes() {
    std::vector<size_t> open(schedules_.size());
    for (size_t rank = 0; rank < open.size(); ++rank) open[rank] = rank;
    while (!open.empty()) {
      std::shuffle(open.begin(), open.end(), random_);
      bool moved = false;
      for (size_t i = 0; i < open.size() && !moved; ++i) {
        const auto state = advance(open[i]);
        if (state == State::kEnded) open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
        moved = state != State::kBlocked;
      }
      if (!moved) return false;
    }
    return true;
  }

  enum class State { kBlocked, kMoved, kEnded };

  State advance(size_t rank) {
    const Schedule& schedule = schedules_[rank];
    Lane& lane = lanes_[rank];
    for (; lane.iteration < setting_.rounds + schedule.maxLag; ++lane.iteration, lane.step = 0) {
      for (; lane.step < schedule.steps.size(); ++lane.step) {
        const Step& step = schedule.steps[lane.step];
        const int round = lane.iteration - step.lag;
        if (round < 0 || round >= setting_.rounds) continue;
        const auto segments = active(schedule, step, round);
        if (segments.empty()) continue;
        if (!ready(schedule, step)) return State::kBlocked;
        execute(schedule, step, round, segments);
        ++lane.step;
        return State::kMoved;
      }
    }
    return State::kEnded;
  }

  std::deque<std::vector<Value>>& link(int from, int to) { return links_[{from, to}]; }

  bool ready(const Schedule& schedule, const Step& step) {
    for (Operand source : schedule.from(step)) {
      if (source.isLink() && link(schedule.inPeers[source.index()], schedule.rank).empty()) return false;
    }
    for (Operand place : schedule.to(step)) {
      if (!place.isLink()) continue;
      if (link(schedule.rank, schedule.outPeers[place.index()]).size() >= static_cast<size_t>(setting_.depth)) {
        return false;
      }
    }
    return true;
  }

  Value read(const Schedule& schedule, const Step& step, Operand source, size_t cell, size_t position) {
    const auto rank = static_cast<size_t>(schedule.rank);
    switch (source.kind()) {
      case Operand::Kind::kInput: {
        Value value = setting_.inPlace ? outputs_[rank][cell] : inputs_[rank][cell];
        if (sums()) value.sum *= kPreScale;
        return value;
      }
      case Operand::Kind::kOutput:
        return outputs_[rank][cell];
      case Operand::Kind::kScratch:
        if (step.skip + position < schedule.segments) return scratches_[rank][source.index()][step.skip + position];
        broken_ = "reads beyond the end of a scratch buffer";
        return {};
      case Operand::Kind::kLink:
        break;
    }
    const auto& slot = link(schedule.inPeers[source.index()], schedule.rank).front();
    if (position < slot.size()) return slot[position];
    broken_ = "reads beyond the end of a slot";
    return {};
  }

  Value combine(const Schedule& schedule, const Step& step, size_t cell, size_t position) {
    const auto from = schedule.from(step);
    Value result = read(schedule, step, from[0], cell, position);
    for (size_t i = 1; i < from.size(); ++i) {
      const Value next = read(schedule, step, from[i], cell, position);
      result = {result.sum + next.sum, scramble(scramble(result.order + i) ^ next.order)};
    }
    const bool divides = (step.flags & kFinalise) != 0;
    if (divides) result = {result.sum * kFinal, result.order ^ kFinal};
    if (divides || from.size() > 1) result.order = scramble(result.order);  // what is stored is rounded
    return result;
  }

  void execute(const Schedule& schedule, const Step& step, int round, const std::vector<uint32_t>& segments) {
    const auto rank = static_cast<size_t>(schedule.rank);
    std::vector<Value> results;
    for (uint32_t segment : segments) {
      results.push_back(combine(schedule, step, cellOf(segment, round), results.size()));
    }
    for (Operand source : schedule.from(step)) {
      if (!source.isLink()) continue;
      auto& slots = link(schedule.inPeers[source.index()], schedule.rank);
      if (slots.empty() || slots.front().size() != results.size()) {
        broken_ = "takes a slot of another length, or none";
      }
      if (!slots.empty()) slots.pop_front();
    }
    for (Operand place : schedule.to(step)) {
      if (place.isLink()) link(schedule.rank, schedule.outPeers[place.index()]).push_back(results);
      for (size_t i = 0; i < results.size(); ++i) {
        if (place.kind() == Operand::Kind::kOutput) outputs_[rank][cellOf(segments[i], round)] = results[i];
        if (place.kind() == Operand::Kind::kScratch) scratches_[rank][place.index()][i] = results[i];
      }
    }
  }

  // The sum that a cell must have at the end; what the collective leaves alone must keep what it had.
  uint64_t due(size_t rank, uint32_t segment, size_t cell) const {
    const auto root = static_cast<size_t>(schedules_[0].root);
    const Collective plain = plainOf(collective_);
    if (plain == Collective::kBroadcast) return original(root, cell).sum;
    if (plain == Collective::kAllGather || plain == Collective::kGather) {
      if (plain != Collective::kGather || rank == root) return original(segment, cell).sum;
    } else if (plain == Collective::kAllToAll) {
      const size_t round = cell % static_cast<size_t>(setting_.rounds);
      return original(segment, cellOf(static_cast<uint32_t>(rank), static_cast<int>(round))).sum;
    } else if (plain == Collective::kScatter) {
      if (segment == rank) return original(root, cell).sum;
    } else if (sums()) {
      const bool scattered = schedules_[0].map == SegmentMap::kPerRank;
      const bool mine = collective_ == Collective::kReduce ? rank == root : !scattered || segment == rank;
      uint64_t sum = 0;
      for (size_t each = 0; each < schedules_.size(); ++each) sum += original(each, cell).sum * kPreScale;
      if (mine) return sum * kFinal;
    }
    return setting_.inPlace ? original(rank, cell).sum : 0xbad;
  }

  std::string checkOutputs() const {
    for (uint32_t segment = 0; segment < schedules_[0].segments; ++segment) {
      for (int round = 0; round < roundsOf(segment); ++round) {
        const size_t cell = cellOf(segment, round);
        for (size_t rank = 0; rank < schedules_.size(); ++rank) {
          const Value& value = outputs_[rank][cell];
          if (value.sum != due(rank, segment, cell)) return "rank " + std::to_string(rank) + " has a wrong output";
          const bool everywhere = collective_ == Collective::kAllReduce || collective_ == Collective::kBarrier;
          if (everywhere && !(value == outputs_[0][cell]))
            return "ranks differ in the order or the roundings of the sum";
        }
      }
    }
    return {};
  }

  std::span<const Schedule> schedules_;
  Setting setting_;
  Collective collective_;
  std::mt19937_64 random_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Value>> inputs_, outputs_;
  std::vector<std::vector<std::vector<Value>>> scratches_;
  std::map<std::pair<int, int>, std::deque<std::vector<Value>>> links_;
  std::string broken_;
};

}  // namespace

std::string runConcretely(std::span<const Schedule> schedules, const Setting& setting) {
  return Interpreter(schedules, setting).run();
}

}  // namespace tutti::schedule::test
