// What every builder writes with: it numbers the peers as they are first named and keeps steps and operands flat.
#pragma once
#include <fmt/format.h>

#include <limits>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "schedule/algorithm.h"

namespace tutti::schedule {

// A number in a field that may be narrower. None of any shape that build() accepts is too large:
// tests/unit/limits_test.cc.
template <class Field>
Field fitted(int number, const char* what) {
  if (number >= 0 && number <= std::numeric_limits<Field>::max()) return static_cast<Field>(number);
  throw Error(ErrorCode::kInternal, fmt::format("a schedule has no room for {} of {}", what, number));
}

class Builder {
 public:
  Builder(const Shape& shape, int rank, SegmentMap map, int segments) : rank_(rank) {
    made_.collective = shape.collective;
    made_.map = map;
    made_.rank = rank;
    made_.size = shape.size;
    made_.root = shape.root;
    made_.segments = static_cast<uint32_t>(segments);
  }

  // A step under construction. Sources come first, in the order of the reduction, then destinations.
  class Draft {
   public:
    Draft& from(Operand source) {
      builder_.made_.operands.push_back(source);
      step().toBegin++;
      step().fromCount = fitted<uint16_t>(step().fromCount + 1, "a step's sources");
      return *this;
    }
    Draft& to(Operand destination) {
      builder_.made_.operands.push_back(destination);
      step().toCount = fitted<uint16_t>(step().toCount + 1, "a step's destinations");
      return *this;
    }
    Draft& fromRank(int peer) { return from(builder_.receive(peer)); }
    Draft& toRank(int peer) { return to(builder_.send(peer)); }
    Draft& lag(int iterations) {
      step().lag = fitted<uint8_t>(iterations, "a lag");
      if (step().lag > builder_.made_.maxLag) builder_.made_.maxLag = step().lag;
      return *this;
    }
    Draft& span(int segments) {
      step().span = fitted<uint16_t>(segments, "a span");
      return *this;
    }
    // Of a scratch buffer that holds more: so many segments come before the step's.
    Draft& skip(int segments) {
      step().skip = fitted<uint16_t>(segments, "what is skipped");
      return *this;
    }
    // The value is complete; nothing happens to it in collectives that do not reduce.
    Draft& finalise() {
      step().flags |= kFinalise;
      return *this;
    }
    // See kLands.
    Draft& lands() {
      step().flags |= kLands;
      return *this;
    }
    // See kDirectWrite.
    Draft& directWrite() {
      step().flags |= kDirectWrite;
      return *this;
    }

   private:
    friend class Builder;
    explicit Draft(Builder& builder) : builder_(builder) {}
    Step& step() { return builder_.made_.steps.back(); }
    Builder& builder_;
  };

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return made_.size; }

  Draft at(int segment) {
    Step step;
    step.fromBegin = step.toBegin = static_cast<uint32_t>(made_.operands.size());
    step.segment = static_cast<uint32_t>(segment);
    made_.steps.push_back(step);
    return Draft(*this);
  }

  // A peer may still read the input over a direct link when the output is written.
  void directOutOfPlaceOnly() { made_.directInPlace = false; }

  // So many as the rank with most of them has.
  void scratches(int count) { made_.scratches = fitted<uint16_t>(count, "scratch buffers"); }

  // `depth` is the smallest that lets all ranks finish; `maxSpan` the largest span on any rank.
  Schedule finish(int depth, int maxSpan = 1) {
    made_.depth = fitted<uint16_t>(depth, "a depth");
    made_.maxSpan = fitted<uint16_t>(maxSpan, "a span");
    return std::move(made_);
  }

 private:
  Operand receive(int peer) { return Operand::link(numberOf(peer, inNumbers_, made_.inPeers)); }
  Operand send(int peer) { return Operand::link(numberOf(peer, outNumbers_, made_.outPeers)); }

  static int numberOf(int peer, std::unordered_map<int, int>& numbers, std::vector<int>& peers) {
    const auto [place, added] = numbers.try_emplace(peer, static_cast<int>(peers.size()));
    if (added) peers.push_back(peer);
    if (place->second > Operand::kMaxIndex)
      throw Error(ErrorCode::kInternal, fmt::format("a schedule has no room for {} links", place->second + 1));
    return place->second;
  }

  int rank_;
  Schedule made_;
  std::unordered_map<int, int> inNumbers_, outNumbers_;
};

// The contributions of all ranks in the order of rank, the own one read from the input.
inline void fromAll(Builder::Draft step, const Builder& builder) {
  for (int peer = 0; peer < builder.size(); ++peer) {
    if (peer == builder.rank()) {
      step.from(Operand::input());
    } else {
      step.fromRank(peer);
    }
  }
}

// To every other rank, the next one first.
inline void toOthers(Builder::Draft step, const Builder& builder) {
  for (int d = 1; d < builder.size(); ++d) step.toRank((builder.rank() + d) % builder.size());
}

// The rows of the algorithms that are built in: each in a file of its name.
namespace rows {
extern const AlgorithmRow kRing, kTree, kOneShot, kTwoShot, kHalving, kBruck, kDirect, kHierarchical, kDoubling,
    kTwoPass;
}

}  // namespace tutti::schedule
