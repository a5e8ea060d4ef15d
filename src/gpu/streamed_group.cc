// In which order the steps of calls that wait in streams are queued.
//
// A communicator has one stream, so that its steps run in the order in which they are queued. Collectives come first.
// Then come the messages, in the order of the distance from sender to receiver, which both ranks see alike; what a rank
// sends and what it receives over one distance advance together, a slot of each in turn, the sending first. So each
// wait goes to a step that stands earlier in an order that all ranks share - by distance, round, sending before
// receiving - or, for room, to one of an earlier round: none waits for ever.
//
// The same order goes across the communicators of the group: what a rank of this process waits for from another one is
// never queued much later than what waits, and a driver that lets the thread queue only so much stops nothing.
#include "gpu/streamed_group.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <tuple>

namespace tutti::gpu {
namespace {

struct Part {
  const StreamedCall* call;
  const DeviceProgram* program;
  engine::StreamedLane lane;
  engine::StreamedQueue* queue;
  uint64_t number = 0;  // of the call
};

// How many places, two a step, a thread may queue before the stream has come to them. Beyond a number of its own the
// driver would let the thread wait, perhaps with a lock that whoever ends the waits of a stream needs; and after a
// failure the stream has to be led through all of them.
constexpr uint64_t kMostAhead = 512;

// What has been queued so far can end, whatever comes later (see above).
void fallBack(std::span<Part> parts) {
  if (std::ranges::none_of(parts, [](const Part& part) { return part.queue->ahead() > kMostAhead; })) return;
  for (const Part& part : parts) part.queue->queue();
  for (const Part& part : parts)
    while (part.queue->ahead() > kMostAhead) {
      part.queue->queue().requireAlive();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

void queueTogether(std::span<Part> parts) {
  size_t iterations = 0;
  for (const Part& part : parts) iterations = std::max(iterations, part.lane.iterations());
  for (size_t i = 0; i < iterations; ++i) {
    fallBack(parts);
    for (Part& part : parts)
      if (i < part.lane.iterations()) part.lane.queueIteration(i, *part.queue);
  }
}

class Streams {
 public:
  explicit Streams(device::Device& device, const std::vector<StreamedCall>& calls) : device_(device) {
    for (const StreamedCall& one : calls) stays_ = stays_ || device.captures(one.stream);
    for (const StreamedCall& one : calls) add(one);
    std::ranges::stable_sort(parts_, {},
                             [](const Part& part) { return std::tuple(part.call->distance, !part.call->call->sends); });
  }

  void queue(bool& begun) {
    const Streaming streaming(journals_);
    device_.beside(queues_, streams_, orders_, [&] {
      begun = true;
      // Now: what is long waits here already.
      for (Part& part : parts_) {
        part.number = part.call->side->nextNumber(*part.call->call);
        part.call->side->launchedInStream(*part.call->call, *part.program);
      }
      for (auto from = parts_.begin(); from != parts_.end();) {
        const auto to = std::find_if(from, parts_.end(),
                                     [&](const Part& part) { return part.call->distance != from->call->distance; });
        queueTogether({from, to});
        from = to;
      }
      for (auto& [side, journal] : journals_) journal.end();
    });
    for (const Part& part : parts_)
      if (const StreamedCall& one = *part.call; one.operation != nullptr)
        one.operation->launched(*one.call, part.number);
  }

 private:
  using Journals = std::map<GpuExecutor*, engine::StreamedQueue>;
  // While it lives, whoever looks at the sides knows that they are being queued on.
  struct Streaming {
    explicit Streaming(const Journals& of) : journals(of) {
      for (const auto& [side, journal] : journals) side->beginStreaming();
    }
    ~Streaming() {
      for (const auto& [side, journal] : journals) side->endStreaming();
    }
    const Journals& journals;
  };

  void add(const StreamedCall& one) {
    auto found = journals_.find(one.side);
    if (found == journals_.end()) {
      found = journals_.emplace(one.side, one.side->streamed().newJournal(stays_)).first;
      queues_.push_back(&one.side->streamed().queue());
      orders_.push_back(&one.side->order());
    }
    if (std::ranges::count(streams_, one.stream) == 0) streams_.push_back(one.stream);
    if (one.operation != nullptr) orders_.push_back(&one.operation->order());
    const DeviceProgram& program = one.side->programFor(*one.call);
    parts_.push_back({&one, &program, one.side->laneFor(*one.call, program), &found->second});
  }

  device::Device& device_;
  bool stays_ = false;  // a graph keeps it
  Journals journals_;
  std::vector<Part> parts_;
  std::vector<device::SideQueue*> queues_;
  std::vector<device::DeviceStream> streams_;
  std::vector<device::LaunchOrder*> orders_;
};

}  // namespace

void queueStreamed(device::Device& device, const std::vector<StreamedCall>& calls, bool& begun) {
  Streams(device, calls).queue(begun);
}

}  // namespace tutti::gpu
