#include "sim/event_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/walk.h"
#include "sim/contention.h"
#include "sim/event_queue.h"
#include "sim/message.h"

namespace tutti::sim {
namespace {

using schedule::Operand;
using schedule::Step;

constexpr uint32_t kNone = ~0u;
constexpr Picoseconds kUnknown = ~Picoseconds{0};

// A lane's turn, or a slot at the resource of its sender or its receiver.
enum class Kind : uint32_t { kTurn, kOut, kIn };

struct Event {
  static constexpr size_t kMostNumbers = size_t{1} << 30;
  Picoseconds time;
  uint32_t bytes;
  uint32_t whose : 30;  // lane, or flow
  Kind kind : 2;
};
static_assert(sizeof(Event) == 16);

struct Lane {
  size_t iteration = 0;
  size_t rounds = 0, iterations = 0;
  Picoseconds free = 0;
  uint32_t step = 0;
  uint32_t bytes = 0;         // of that step; 0: not known yet
  uint32_t waitsFor = kNone;  // a flow of which the next slot, or the next room, is not known yet
};

// A wire's FIFO, of one channel.
struct Flow {
  uint64_t posted = 0, arrived = 0, taken = 0;
};

class EventRun {
 public:
  EventRun(std::span<const Schedule> schedules, const Wiring& wiring, const Network& network,
           const kernels::Layout& layout, const Rounds& rounds, const EventLimits& limits)
      : schedules_(schedules),
        wiring_(wiring),
        network_(network),
        rounds_(rounds),
        limits_(limits),
        channels_(static_cast<uint32_t>(network.cluster().channels)),
        depth_(network.cluster().depth),
        lanes_(schedules.size() * channels_),
        flows_(wiring.wires.size() * channels_),
        arrivals_(flows_.size() * depth_),
        rooms_(flows_.size() * depth_),
        contention_(network) {
    if (std::max(flows_.size(), lanes_.size()) > Event::kMostNumbers)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} lanes with {} links are too many to simulate; try fewer nodes or fewer channels",
                              lanes_.size(), flows_.size()));
    for (uint32_t c = 0; c < channels_; ++c) {
      layouts_.push_back(layout);
      layouts_.back().channel = c;
      layouts_.back().channels = channels_;
    }
    outcome_.finish.resize(schedules.size());
  }

  Outcome run() {
    for (uint32_t lane = 0; lane < lanes_.size(); ++lane) start(lane);
    while (!queue_.empty()) {
      const Event event = queue_.pop();
      if (++outcome_.events > limits_.events) refuseLength();
      handle(event);
    }
    if (ended_ < lanes_.size()) reportStop();
    outcome_.busy = contention_.takeBusy();
    outcome_.bytes = contention_.takeBytes();
    return std::move(outcome_);
  }

 private:
  uint32_t rankOf(uint32_t lane) const { return lane / channels_; }
  uint32_t channelOf(uint32_t lane) const { return lane % channels_; }
  const Wire& wireOf(uint32_t flow) const { return wiring_.wires[flow / channels_]; }
  uint32_t inFlow(uint32_t lane, Operand operand) const {
    const uint32_t rank = rankOf(lane);
    return wiring_.in[wiring_.inBegin[rank] + static_cast<uint32_t>(operand.index())] * channels_ + channelOf(lane);
  }
  uint32_t outFlow(uint32_t lane, Operand operand) const {
    const uint32_t rank = rankOf(lane);
    return wiring_.out[wiring_.outBegin[rank] + static_cast<uint32_t>(operand.index())] * channels_ + channelOf(lane);
  }
  Picoseconds& slotTime(std::vector<Picoseconds>& times, uint32_t flow, uint64_t number) {
    return times[size_t{flow} * depth_ + number % depth_];
  }

  void push(Picoseconds time, Kind kind, uint32_t whose, uint32_t bytes = 0) {
    Event event;
    event.time = time;
    event.bytes = bytes;
    event.whose = whose;
    event.kind = kind;
    queue_.push(event);
  }

  void start(uint32_t number) {
    Lane& lane = lanes_[number];
    lane.rounds = rounds_.run(layouts_[channelOf(number)].rounds());
    lane.iterations = kernels::iterationsOf(lane.rounds, schedules_[rankOf(number)].maxLag);
    push(0, Kind::kTurn, number);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Kind::kTurn:
        return advance(event.whose, event.time);
      case Kind::kOut:
        return leave(event.whose, event.bytes, event.time);
      case Kind::kIn:
        return enter(event.whose, event.bytes, event.time);
    }
  }

  size_t bytesOf(uint32_t number, const Step& step, size_t round) const {
    const auto& layout = layouts_[channelOf(number)];
    return countOf(layout, step, rounds_.standsFor(round)) * kElementBytes;
  }

  // Goes on to the next step that has something to do; false: there is none.
  bool findStep(uint32_t number) {
    const Schedule& schedule = schedules_[rankOf(number)];
    Lane& lane = lanes_[number];
    if (lane.bytes != 0) return true;
    for (; lane.iteration < lane.iterations; endIteration(lane)) {
      for (; lane.step < schedule.steps.size(); ++lane.step) {
        const Step& step = schedule.steps[lane.step];
        const size_t round = kernels::roundOf(step, lane.iteration);
        if (round >= lane.rounds) continue;
        lane.bytes = static_cast<uint32_t>(bytesOf(number, step, round));
        if (lane.bytes != 0) return true;
      }
    }
    return false;
  }

  void endIteration(Lane& lane) {
    if (outcome_.iterationEnd.size() <= lane.iteration) outcome_.iterationEnd.resize(lane.iteration + 1);
    Picoseconds& end = outcome_.iterationEnd[lane.iteration];
    end = std::max(end, lane.free);
    ++lane.iteration, lane.step = 0;
  }

  // When the step may run; unknown while a slot has not come in, or room has not been made. Then the lane is woken.
  Picoseconds readyAt(uint32_t number, const Step& step) {
    const Schedule& schedule = schedules_[rankOf(number)];
    Lane& lane = lanes_[number];
    Picoseconds ready = lane.free;
    const auto wait = [&](uint32_t flow) { return lane.waitsFor = flow, kUnknown; };
    for (const Operand operand : schedule.from(step)) {
      if (!operand.isLink()) continue;
      const uint32_t flow = inFlow(number, operand);
      if (flows_[flow].taken == flows_[flow].arrived) return wait(flow);
      ready = std::max(ready, slotTime(arrivals_, flow, flows_[flow].taken));
    }
    for (const Operand operand : schedule.to(step)) {
      if (!operand.isLink()) continue;
      const uint32_t flow = outFlow(number, operand);
      if (flows_[flow].posted - flows_[flow].taken >= depth_) return wait(flow);
      if (flows_[flow].posted >= depth_) ready = std::max(ready, slotTime(rooms_, flow, flows_[flow].posted));
    }
    return ready;
  }

  void advance(uint32_t number, Picoseconds now) {
    Lane& lane = lanes_[number];
    for (;;) {
      if (!findStep(number)) return end(number);
      const Step& step = schedules_[rankOf(number)].steps[lane.step];
      const Picoseconds ready = readyAt(number, step);
      if (ready == kUnknown) return;
      if (ready > now) return push(ready, Kind::kTurn, number);
      execute(number, step, lane.bytes, now);
      ++lane.step, lane.bytes = 0;
    }
  }

  void end(uint32_t number) {
    Picoseconds& finish = outcome_.finish[rankOf(number)];
    finish = std::max(finish, lanes_[number].free);
    ++ended_;
  }

  void execute(uint32_t number, const Step& step, uint32_t bytes, Picoseconds now) {
    const Schedule& schedule = schedules_[rankOf(number)];
    const Picoseconds done = now + network_.combineTime(bytes, step.fromCount);
    lanes_[number].free = done;
    for (const Operand operand : schedule.from(step))
      if (operand.isLink()) release(inFlow(number, operand), done);
    for (const Operand operand : schedule.to(step))
      if (operand.isLink()) post(outFlow(number, operand), bytes, now, done);
  }

  void release(uint32_t flow, Picoseconds done) {
    const Picoseconds known = done + wireOf(flow).path.latency;
    slotTime(rooms_, flow, flows_[flow].taken++) = known;
    wake(wireOf(flow).sender, flow, known);
  }

  void post(uint32_t flow, uint32_t bytes, Picoseconds now, Picoseconds done) {
    ++flows_[flow].posted;
    if (done == now) return leave(flow, bytes, now);
    push(done, Kind::kOut, flow, bytes);
  }

  void leave(uint32_t flow, uint32_t bytes, Picoseconds now) {
    const Picoseconds begin = contention_.occupy(wireOf(flow).path.out, bytes, now);
    if (begin == now) return enter(flow, bytes, now);
    push(begin, Kind::kIn, flow, bytes);
  }

  void enter(uint32_t flow, uint32_t bytes, Picoseconds left) {
    const Path& path = wireOf(flow).path;
    const Picoseconds arrival = contention_.arrival(path, bytes, left, contention_.occupy(path.in, bytes, left));
    slotTime(arrivals_, flow, flows_[flow].arrived++) = arrival;
    wake(wireOf(flow).receiver, flow, arrival);
  }

  void wake(uint32_t rank, uint32_t flow, Picoseconds time) {
    if (rank == Wire::kNobody) return;
    const uint32_t number = rank * channels_ + flow % channels_;
    if (lanes_[number].waitsFor != flow) return;
    lanes_[number].waitsFor = kNone;
    push(time, Kind::kTurn, number);
  }

  [[noreturn]] void refuseLength() const {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} on {} ranks takes more than {:g} million events to simulate; try fewer nodes, fewer "
                            "channels or another algorithm",
                            nameOf(schedules_[0].algorithm), schedules_[0].size, double(limits_.events) / 1e6));
  }

  [[noreturn]] void reportStop() const {
    uint32_t number = 0;
    while (lanes_[number].waitsFor == kNone) ++number;
    const uint32_t flow = lanes_[number].waitsFor;
    const uint32_t rank = rankOf(number);
    const bool forSlot = wireOf(flow).receiver == rank && flows_[flow].taken == flows_[flow].arrived;
    const uint32_t other = forSlot ? wireOf(flow).sender : wireOf(flow).receiver;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the schedules deadlock at depth {}: rank {} waits for ever for {} {}, in step {} of iteration {}",
                    depth_, rank, forSlot ? "a slot from" : "room at",
                    other == Wire::kNobody ? "a rank that has no such link" : fmt::format("rank {}", other),
                    lanes_[number].step, lanes_[number].iteration));
  }

  std::span<const Schedule> schedules_;
  const Wiring& wiring_;
  const Network& network_;
  Rounds rounds_;
  EventLimits limits_;
  uint32_t channels_, depth_;
  std::vector<Lane> lanes_;                    // rank by rank
  std::vector<Flow> flows_;                    // wire by wire
  std::vector<Picoseconds> arrivals_, rooms_;  // of the last `depth` slots of each flow
  std::vector<kernels::Layout> layouts_;       // of each channel
  Contention contention_;
  EventQueue<Event> queue_;
  size_t ended_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome runEvents(std::span<const Schedule> schedules, const Wiring& wiring, const Network& network,
                  const kernels::Layout& layout, const Rounds& rounds, const EventLimits& limits) {
  return EventRun(schedules, wiring, network, layout, rounds, limits).run();
}

}  // namespace tutti::sim
