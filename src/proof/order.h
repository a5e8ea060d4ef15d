// What happens before what, as the ranks of a set of schedules can know: by the order of a rank's own steps, and by
// slots that are posted and taken (vector clocks: F. Mattern, "Virtual Time and Global States of Distributed Systems",
// 1989). Room in a link orders steps too, but not for FIFOs of every depth: it is not relied upon.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "proof/simulator.h"

namespace tutti::proof {

// How many steps of each rank have happened before, as far as whoever holds the clock can know.
using VectorClock = std::vector<uint32_t>;

struct Event {
  int rank = -1;
  uint32_t time = 0;  // number of its step, from 1
  bool before(const VectorClock& clock) const { return rank < 0 || clock[static_cast<size_t>(rank)] >= time; }
};

// What a rank knows. Its own time passes with every step; what it knows of the others changes where it takes a slot, so
// what it posts in between tells one and the same.
class Knowledge {
 public:
  Knowledge(int rank, size_t ranks) : rank_(rank), clock_(ranks) {}

  const VectorClock& clock() const { return clock_; }
  Event now() const { return {rank_, clock_[static_cast<size_t>(rank_)]}; }
  void step() { ++clock_[static_cast<size_t>(rank_)]; }

  std::shared_ptr<const VectorClock> tell() {
    if (told_ == nullptr) told_ = std::make_shared<const VectorClock>(clock_);
    return told_;
  }

  void learn(const VectorClock& told, Event teller) {
    for (size_t i = 0; i < clock_.size(); ++i) clock_[i] = std::max(clock_[i], told[i]);
    uint32_t& time = clock_[static_cast<size_t>(teller.rank)];
    time = std::max(time, teller.time);
    told_.reset();
  }

 private:
  int rank_;
  VectorClock clock_;
  std::shared_ptr<const VectorClock> told_;  // since it last learnt
};

// Follows a run of the simulator. No link holds more slots than `depth`: a slot's place among those of all links is
// told to whoever keeps something with it.
class Order {
 public:
  Order(size_t ranks, size_t links, int depth)
      : depth_(static_cast<size_t>(depth)), flows_(links), told_(links * depth_) {
    for (size_t rank = 0; rank < ranks; ++rank) known_.emplace_back(static_cast<int>(rank), ranks);
  }

  const Knowledge& of(int rank) const { return known_[static_cast<size_t>(rank)]; }
  size_t places() const { return told_.size(); }

  void step(int rank) { known_[static_cast<size_t>(rank)].step(); }

  size_t take(int rank, uint32_t link) {
    const size_t place = placeOf(link, flows_[link].taken++);
    const Told told = std::move(told_[place]);
    known_[static_cast<size_t>(rank)].learn(*told.clock, told.by);
    return place;
  }

  // `again`: the post of that link's first was of this round as well, and tells what its rank knew then.
  size_t post(int rank, uint32_t link, bool again = false) {
    Flow& flow = flows_[link];
    const size_t place = placeOf(link, flow.posted++);
    Knowledge& known = known_[static_cast<size_t>(rank)];
    if (!again) flow.last = {known.now(), known.tell()};
    told_[place] = flow.last;
    return place;
  }

 private:
  struct Told {
    Event by;
    std::shared_ptr<const VectorClock> clock;
  };

  struct Flow : Simulator::Flow {
    Told last;
  };

  size_t placeOf(uint32_t link, uint64_t number) const { return link * depth_ + number % depth_; }

  size_t depth_;
  std::vector<Knowledge> known_;
  std::vector<Flow> flows_;
  std::vector<Told> told_;
};

}  // namespace tutti::proof
