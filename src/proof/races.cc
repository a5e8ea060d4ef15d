#include "proof/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "schedule/stays.h"

namespace tutti::proof {
namespace {

using schedule::Stays;

// How many steps of each rank have happened before, as far as whoever holds the clock can know.
using VectorClock = std::vector<uint32_t>;

struct Event {
  int rank = -1;
  uint32_t time = 0;  // number of its step, from 1
  bool before(const VectorClock& clock) const { return rank < 0 || clock[rank] >= time; }
};

// A segment of a buffer in one round.
struct Cell {
  Event written;
  std::vector<Event> read;  // since then
};

class Races {
 public:
  Races(std::span<const Schedule> schedules, const Wiring& wiring, InPlace inPlace, DirectBy by, const Lengths& lengths,
        Problems& problems)
      : schedules_(schedules),
        wiring_(wiring),
        inPlace_(inPlace),
        by_(by),
        lengths_(lengths),
        problems_(problems),
        clocks_(schedules.size(), VectorClock(schedules.size())),
        links_(wiring.links.size()) {}

  void execute(int rank, const Step& step, int round) {
    const Schedule& schedule = schedules_[rank];
    ++clocks_[rank][rank];
    for (const Operand source : schedule.from(step)) take(rank, step, round, source);
    for (const Operand destination : schedule.to(step))
      if (destination.kind() == Operand::Kind::kOutput)
        forSegments(rank, step, round, [&](uint32_t segment) { write(rank, rank, segment, round); });
    for (const Operand destination : schedule.to(step))
      if (destination.isLink()) post(rank, step, round, wiring_.out[rank][destination.index()]);
  }

 private:
  using Kind = Operand::Kind;
  struct Slot {
    VectorClock clock;
    uint32_t segment = 0;
    uint16_t span = 1;
    bool directWrite = false;
    int refersTo = -1;  // the rank whose buffer it is in
    bool input = true;  // that buffer
  };

  bool isInPlace(int rank) const { return inPlace_ == InPlace::kAll || (inPlace_ == InPlace::kSome && rank % 2 == 1); }
  // Whether peers may use its buffers.
  bool opens(int rank) const {
    return inPlace_ != InPlace::kSome || !isInPlace(rank) || schedules_[rank].directInPlace;
  }

  template <class Visit>
  void forSegments(int rank, const Step& step, int round, Visit visit) {
    for (uint32_t i = 0; i < step.span; ++i) {
      const uint32_t segment = (step.segment + i) % schedules_[rank].segments;
      if (round < lengths_.of(schedules_[rank], step, segment)) visit(segment);
    }
  }

  void take(int rank, const Step& step, int round, Operand source) {
    if (source.kind() == Kind::kInput || source.kind() == Kind::kOutput)
      forSegments(rank, step, round,
                  [&](uint32_t segment) { read(rank, rank, source.kind() == Kind::kInput, segment, round); });
    if (!source.isLink()) return;
    auto& link = links_[wiring_.in[rank][source.index()]];
    const Slot slot = std::move(link.front());
    link.pop_front();
    for (size_t i = 0; i < slot.clock.size(); ++i) clocks_[rank][i] = std::max(clocks_[rank][i], slot.clock[i]);
    if (slot.refersTo >= 0) read(rank, slot.refersTo, slot.input, slot.segment, round);
    const bool lent = by_ == DirectBy::kLane && slot.refersTo >= 0;
    if ((slot.directWrite && !(storesAsItIs(rank, step, slot) && step.segment == slot.segment)) ||
        (lent && !storesAsItIs(rank, step, slot)))
      complain(rank, round, "takes a value that should land in its output, and does something else with it");
  }

  bool storesAsItIs(int rank, const Step& step, const Slot& slot) const {
    const auto to = schedules_[rank].to(step);
    return step.fromCount == 1 && (step.flags & kFinalise) == 0 && step.span == slot.span &&
           std::ranges::count(to, Operand::output()) == 1;
  }

  Stays lentBy(const Schedule& schedule, const Step& step) const {
    if (by_ == DirectBy::kLane) return staysOf(schedule, step);
    if (by_ == DirectBy::kMapped) return staysForAnyUse(schedule, step);
    const auto from = schedule.from(step);
    return from.size() == 1 && from[0] == Operand::input() && step.span == 1 ? Stays::kInInput : Stays::kNowhere;
  }

  void post(int rank, const Step& step, int round, uint32_t link) {
    const int receiver = wiring_.links[link].receiver;
    const bool lands = by_ == DirectBy::kKernel && (step.flags & kDirectWrite) != 0 && opens(receiver);
    Slot slot{clocks_[rank], step.segment, step.span, lands};
    const Stays where = lentBy(schedules_[rank], step);
    if (where != Stays::kNowhere && opens(rank)) {
      slot.refersTo = rank;
      slot.input = where == Stays::kInInput;
    }
    if (slot.directWrite) {
      forSegments(rank, step, round, [&](uint32_t segment) { write(rank, receiver, segment, round); });
    }
    links_[link].push_back(std::move(slot));
  }

  Cell& cell(int owner, bool input, uint32_t segment, int round) {
    const uint64_t buffer = static_cast<uint64_t>(owner) * 2 + (input && !isInPlace(owner) ? 1 : 0);
    return cells_[(buffer << 24 | segment) << 16 | static_cast<uint64_t>(round)];
  }

  void read(int rank, int owner, bool input, uint32_t segment, int round) {
    Cell& place = cell(owner, input, segment, round);
    require(place.written, rank, owner, segment, round, "reads");
    place.read.push_back(now(rank));
  }

  void write(int rank, int owner, uint32_t segment, int round) {
    Cell& place = cell(owner, false, segment, round);
    require(place.written, rank, owner, segment, round, "writes");
    for (const Event& event : place.read) require(event, rank, owner, segment, round, "writes");
    place.written = now(rank);
    place.read.clear();
  }

  Event now(int rank) const { return {rank, clocks_[rank][rank]}; }

  void require(const Event& earlier, int rank, int owner, uint32_t segment, int round, const char* does) {
    if (earlier.rank == rank || earlier.before(clocks_[rank])) return;
    complain(rank, round,
             fmt::format("{} segment {} of rank {}'s {}, which rank {} may be using at that time", does, segment, owner,
                         isInPlace(owner) ? "buffer in place" : "buffer", earlier.rank));
  }

  void complain(int rank, int round, const std::string& what) {
    problems_.add(fmt::format("over direct links rank {} {} (round {})", rank, what, round));
  }

  std::span<const Schedule> schedules_;
  const Wiring& wiring_;
  InPlace inPlace_;
  DirectBy by_;
  const Lengths& lengths_;
  Problems& problems_;
  std::vector<VectorClock> clocks_;
  std::vector<std::deque<Slot>> links_;
  std::unordered_map<uint64_t, Cell> cells_;
};

}  // namespace

void checkDirect(std::span<const Schedule> schedules, const Wiring& wiring, InPlace inPlace, Problems& problems,
                 DirectBy by, const Lengths& lengths) {
  Races races(schedules, wiring, inPlace, by, lengths, problems);
  Simulator simulator(schedules, wiring, schedules[0].depth, lengths);
  simulator.run([&](int rank, const Step& step, int round) {
    if (!problems.full()) races.execute(rank, step, round);
  });
}

}  // namespace tutti::proof
