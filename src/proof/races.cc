#include "proof/races.h"

#include <fmt/format.h>

#include <algorithm>

#include "proof/order.h"
#include "schedule/stays.h"

namespace tutti::proof {
namespace {

using schedule::Stays;

// A segment of a buffer in one round.
struct Cell {
  Event written;
  std::vector<Event> read;  // since then
};

// One use of direct links, over a run whose order is given.
class Races {
 public:
  Races(std::span<const Schedule> schedules, const Order& order, DirectUse use, const Lengths& lengths,
        Problems& problems)
      : schedules_(schedules),
        order_(order),
        use_(use),
        lengths_(lengths),
        problems_(problems),
        slots_(order.places()),
        cells_(schedules.size() * 2 * schedules[0].segments * static_cast<size_t>(lengths.rounds())) {}

  void readOwn(int rank, const Step& step, int round, Operand source) {
    if (source.isLink()) return;
    forSegments(rank, step, round,
                [&](uint32_t segment) { read(rank, rank, source == Operand::input(), segment, round); });
  }

  // The slot at that place of the order's, which the rank has just taken.
  void take(int rank, const Step& step, int round, size_t place) {
    const Slot slot = slots_[place];
    if (slot.refersTo >= 0) read(rank, slot.refersTo, slot.input, slot.segment, round);
    if (slot.directWrite && !(storesAsItIs(rank, step, slot) && step.segment == slot.segment))
      complain(rank, round, "takes a value that should land in its output, and does something else with it");
  }

  void writeOwn(int rank, const Step& step, int round) {
    forSegments(rank, step, round, [&](uint32_t segment) { write(rank, rank, segment, round); });
  }

  void post(int rank, const Step& step, int round, int receiver, size_t place) {
    const bool lands = use_.by == DirectBy::kKernel && (step.flags & kDirectWrite) != 0 && opens(receiver);
    Slot slot{step.segment, step.span, lands};
    const Stays where = lentBy(schedules_[rank], step);
    if (where != Stays::kNowhere && opens(rank)) {
      slot.refersTo = rank;
      slot.input = where == Stays::kInInput;
    }
    if (slot.directWrite)
      forSegments(rank, step, round, [&](uint32_t segment) { write(rank, receiver, segment, round); });
    slots_[place] = slot;
  }

  // Whether it copies for itself once its peers may read: a lane does, what it lends of its input.
  bool postsFirst(int rank, const Step& step) const {
    return use_.by == DirectBy::kLane && opens(rank) && lentBy(schedules_[rank], step) == Stays::kInInput;
  }

  bool isInPlace(int rank) const {
    return use_.inPlace == InPlace::kAll || (use_.inPlace == InPlace::kSome && rank % 2 == 1);
  }

 private:
  struct Slot {
    uint32_t segment = 0;
    uint16_t span = 1;
    bool directWrite = false;
    int refersTo = -1;  // the rank whose buffer it is in
    bool input = true;  // that buffer
  };

  // Whether peers may use its buffers.
  bool opens(int rank) const {
    return use_.inPlace != InPlace::kSome || !isInPlace(rank) || schedules_[rank].directInPlace;
  }

  template <class Visit>
  void forSegments(int rank, const Step& step, int round, Visit visit) {
    for (uint32_t i = 0; i < step.span; ++i) {
      const uint32_t segment = (step.segment + i) % schedules_[rank].segments;
      if (round < lengths_.of(schedules_[rank], step, segment)) visit(segment);
    }
  }

  bool storesAsItIs(int rank, const Step& step, const Slot& slot) const {
    const auto to = schedules_[rank].to(step);
    return step.fromCount == 1 && (step.flags & kFinalise) == 0 && step.span == slot.span &&
           std::ranges::count(to, Operand::output()) == 1;
  }

  Stays lentBy(const Schedule& schedule, const Step& step) const {
    if (use_.by == DirectBy::kLane) return staysOf(schedule, step);
    const auto from = schedule.from(step);
    return from.size() == 1 && from[0] == Operand::input() && step.span == 1 ? Stays::kInInput : Stays::kNowhere;
  }

  Cell& cell(int owner, bool input, uint32_t segment, int round) {
    const size_t buffer = static_cast<size_t>(owner) * 2 + (input && !isInPlace(owner) ? 1 : 0);
    const size_t place = buffer * schedules_[0].segments + segment;
    return cells_[place * static_cast<size_t>(lengths_.rounds()) + static_cast<size_t>(round)];
  }

  void read(int rank, int owner, bool input, uint32_t segment, int round) {
    Cell& place = cell(owner, input, segment, round);
    require(place.written, rank, owner, segment, round, "reads");
    place.read.push_back(order_.of(rank).now());
  }

  void write(int rank, int owner, uint32_t segment, int round) {
    Cell& place = cell(owner, false, segment, round);
    require(place.written, rank, owner, segment, round, "writes");
    for (const Event& event : place.read) require(event, rank, owner, segment, round, "writes");
    place.written = order_.of(rank).now();
    place.read.clear();
  }

  void require(const Event& earlier, int rank, int owner, uint32_t segment, int round, const char* does) {
    if (earlier.rank == rank || earlier.before(order_.of(rank).clock())) return;
    complain(rank, round,
             fmt::format("{} segment {} of rank {}'s {}, which rank {} may be using at that time", does, segment, owner,
                         isInPlace(owner) ? "buffer in place" : "buffer", earlier.rank));
  }

  void complain(int rank, int round, const std::string& what) {
    problems_.add(fmt::format("over direct links rank {} {} (round {})", rank, what, round));
  }

  std::span<const Schedule> schedules_;
  const Order& order_;
  DirectUse use_;
  const Lengths& lengths_;
  Problems& problems_;
  std::vector<Slot> slots_;
  std::vector<Cell> cells_;  // of each rank's output and input, segment by segment, round by round
};

// A step as all uses see it: what it takes, stores and posts, one after the other.
class Run {
 public:
  Run(std::span<const Schedule> schedules, const Wiring& wiring, std::span<const DirectUse> uses, Problems& problems,
      const Lengths& lengths, const Covered& covered)
      : schedules_(schedules),
        wiring_(wiring),
        covered_(covered),
        order_(schedules.size(), wiring.links.size(), schedules[0].depth) {
    for (const DirectUse use : uses) races_.emplace_back(schedules, order_, use, lengths, problems);
  }

  void execute(int rank, const Step& step, int round) {
    order_.step(rank);
    for (const Operand source : schedules_[rank].from(step)) take(rank, step, round, source);
    const bool again = isCovered(rank, step, round);
    write(rank, step, round, [&](const Races& races) { return !again && !races.postsFirst(rank, step); });
    for (const Operand destination : schedules_[rank].to(step))
      if (destination.isLink()) post(rank, step, round, wiring_.out[rank][destination.index()], again);
    order_.step(rank);  // what follows the posts is not known by them
    write(rank, step, round,
          [&](const Races& races) { return (again || races.postsFirst(rank, step)) && !races.isInPlace(rank); });
  }

 private:
  // The own output, where it is time for that.
  template <class IsTime>
  void write(int rank, const Step& step, int round, IsTime isTime) {
    if (std::ranges::count(schedules_[rank].to(step), Operand::output()) == 0) return;
    for (Races& races : races_)
      if (isTime(races)) races.writeOwn(rank, step, round);
  }

  void take(int rank, const Step& step, int round, Operand source) {
    for (Races& races : races_) races.readOwn(rank, step, round, source);
    if (!source.isLink()) return;
    const size_t place = order_.take(rank, wiring_.in[rank][source.index()]);
    for (Races& races : races_) races.take(rank, step, round, place);
  }

  bool isCovered(int rank, const Step& step, int round) const {
    return !covered_.empty() && covered_[rank][static_cast<size_t>(&step - schedules_[rank].steps.data())][round];
  }

  void post(int rank, const Step& step, int round, uint32_t link, bool again) {
    const size_t place = order_.post(rank, link, again);
    for (Races& races : races_) races.post(rank, step, round, wiring_.links[link].receiver, place);
  }

  std::span<const Schedule> schedules_;
  const Wiring& wiring_;
  const Covered& covered_;
  Order order_;
  std::vector<Races> races_;
};

}  // namespace

void checkDirect(std::span<const Schedule> schedules, const Wiring& wiring, std::span<const DirectUse> uses,
                 Problems& problems, const Lengths& lengths, const Covered& covered) {
  Run run(schedules, wiring, uses, problems, lengths, covered);
  Simulator simulator(schedules, wiring, schedules[0].depth, lengths);
  simulator.run([&](int rank, const Step& step, int round) {
    if (!problems.full()) run.execute(rank, step, round);
  });
}

}  // namespace tutti::proof
