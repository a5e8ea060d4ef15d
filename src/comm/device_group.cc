// In which launches the calls of a group run.
//
// All blocks of a launch are on the GPU together, so calls that may have to wait for each other's progress belong into
// one launch: the first collective of every communicator with those of all others, and messages with each other. Calls
// that use the same links come one after the other: the second collective of a communicator, the second message to the
// same peer. Where the messages of a communicator are more than the blocks that it was promised, they go in the order
// of the distance from sender to receiver. Both ranks of a message see the same distance, so when every rank goes
// through the distances in this order, none waits for a message that another has put behind one that waits for it.
#include "comm/device_group.h"

#include <algorithm>
#include <map>
#include <new>
#include <tuple>

#include "comm/device_side.h"
#include "comm/device_streamed_group.h"

namespace tutti::comm {
namespace {

// A call and where it stands in the order of launches.
struct Placed {
  const DeviceCall* call;
  int round;     // how many calls on the same links come before it
  int distance;  // of a message from sender to receiver; -1: a collective
  int part = 0;  // of the round
};

int distanceOf(const DeviceCall& one) {
  if (one.call.collective != Collective::kSendRecv) return -1;
  const int size = one.communicator->size(), rank = one.communicator->rank();
  return (one.call.sends ? one.call.root - rank + size : rank - one.call.root + size) % size;
}

std::vector<Placed> place(const std::vector<DeviceCall>& calls) {
  std::map<std::tuple<Communicator*, int, bool>, int> seen;  // communicator, peer or -1, sends
  std::vector<Placed> placed;
  for (const DeviceCall& one : calls) {
    const int distance = distanceOf(one);
    const int peer = distance < 0 ? -1 : one.call.root;
    placed.push_back({&one, seen[{one.communicator.get(), peer, distance >= 0 && one.call.sends}]++, distance});
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.round, a.distance) < std::tie(b.round, b.distance);
  });
  return placed;
}

// One launch in the making; and what waits in streams, which goes out behind it, as on every other rank.
class Batch {
 public:
  explicit Batch(device::Device& device) : device_(device) {}

  void add(const Placed& placed) {
    const DeviceCall& one = *placed.call;
    DeviceSide& side = *one.communicator->device();
    const DeviceProgram& program = side.programFor(one.call);  // throws for what can not be
    if (side.streams(one.call)) return streamed_.push_back({&side, &one.call, one.stream, placed.distance});
    stays_ = stays_ || device_.captures(one.stream);
    device::Work work = side.workFor(one.call, program, stays_);
    work.firstBlock = blocks_;
    blocks_ += work.layout.channels;
    works_.push_back(work);
    calls_.push_back({&one, &program});
    if (std::ranges::count(streams_, one.stream) == 0) streams_.push_back(one.stream);
    if (std::ranges::count(orders_, &side.order()) == 0) orders_.push_back(&side.order());
  }

  void prepare() {
    if (works_.empty()) return;
    launch_.count = static_cast<uint32_t>(works_.size());
    if (works_.size() <= device::kMaxInlineWorks)
      std::copy(works_.begin(), works_.end(), launch_.works);
    else
      launch_.more = calls_.front().call->communicator->device()->placeWorks(works_, stays_);
  }

  // `begun` becomes true as soon as something has gone to a stream.
  void queue(bool& begun) {
    if (!works_.empty()) launch(), begun = true;
    if (!streamed_.empty()) queueStreamed(device_, streamed_, begun);
  }

 private:
  void launch() {
    device_.launch(launch_, blocks_, streams_, orders_);
    for (size_t i = 0; i < calls_.size(); ++i) {
      const auto& [call, program] = calls_[i];
      call->communicator->device()->launched(call->call, *program, works_[i]);
    }
  }

  device::Device& device_;
  device::Launch launch_;
  uint32_t blocks_ = 0;
  bool stays_ = false;  // a graph keeps it
  std::vector<device::Work> works_;
  struct Launched {
    const DeviceCall* call;
    const DeviceProgram* program;
  };
  std::vector<Launched> calls_;  // as works_
  std::vector<device::DeviceStream> streams_;
  std::vector<device::LaunchOrder*> orders_;
  std::vector<StreamedCall> streamed_;
};

// Splits the rounds into parts in which no communicator has more blocks than it was promised.
void split(std::vector<Placed>& placed) {
  int part = 0;
  std::map<Communicator*, uint32_t> filled;
  for (auto from = placed.begin(); from != placed.end();) {
    const auto to = std::find_if(from, placed.end(), [&](const Placed& one) {
      return one.round != from->round || one.distance != from->distance;
    });
    std::map<Communicator*, uint32_t> more;
    for (auto one = from; one != to; ++one) {
      Communicator& communicator = *one->call->communicator;
      const DeviceShape& shape = communicator.device()->shape();
      more[&communicator] += one->distance < 0 ? shape.channels : shape.messageChannels;
    }
    const bool fits = std::ranges::all_of(more, [&](const auto& entry) {
      return filled[entry.first] + entry.second <= entry.first->device()->shape().blocks();
    });
    if (!fits || (from != placed.begin() && std::prev(from)->round != from->round)) ++part, filled.clear();
    for (const auto& [communicator, blocks] : more) filled[communicator] += blocks;
    for (; from != to; ++from) from->part = part;
  }
}

// What has begun, here and on other ranks, waits for what will not come.
void failAll(const std::vector<DeviceCall>& calls, const Error& error) noexcept {
  for (const DeviceCall& one : calls) one.communicator->fail(error);
}

}  // namespace

void launchCalls(const std::vector<DeviceCall>& calls) {
  for (const DeviceCall& one : calls)
    if (one.communicator->broken())
      throw one.communicator->failure(one.call.describe(one.communicator->device()->nextNumber(one.call)));
  for (const DeviceCall& one : calls) one.communicator->device()->beginGroup();
  std::vector<Placed> placed = place(calls);
  split(placed);
  // GPUs of one process have a launch each.
  std::map<std::pair<int, device::Device*>, Batch> batches;
  for (const Placed& one : placed) {
    device::Device& device = one.call->communicator->device()->device();
    batches.try_emplace({one.part, &device}, device).first->second.add(one);
  }
  // What can not be is said before anything is launched, which other ranks would wait in.
  for (auto& [key, batch] : batches) batch.prepare();
  bool begun = false;
  try {
    for (auto& [key, batch] : batches) batch.queue(begun);
  } catch (const Error& error) {
    if (begun) failAll(calls, error);
    throw;
  } catch (const std::bad_alloc&) {
    if (begun) failAll(calls, outOfMemory);
    throw;
  }
}

}  // namespace tutti::comm
