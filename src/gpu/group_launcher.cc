// In which launches the calls of a group run.
//
// All blocks of a launch are on the GPU together, so calls that may have to wait for each other's progress belong into
// one launch: the first collective of every communicator with those of all others, and messages with each other. Calls
// that use the same links come one after the other: the second collective of a communicator, the second message to the
// same peer. Where the messages of a communicator are more than the blocks that it was promised, they go in the order
// of the distance from sender to receiver. Both ranks of a message see the same distance, so when every rank goes
// through the distances in this order, none waits for a message that another has put behind one that waits for it.
#include "gpu/group_launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <tuple>

#include "gpu/executor.h"
#include "gpu/faults.h"
#include "gpu/operation.h"
#include "gpu/streamed_group.h"

namespace tutti::gpu {
namespace {

GpuExecutor& sideOf(const comm::PendingCall& one) { return static_cast<GpuExecutor&>(*one.executor); }

LaunchedOperation* operationOf(const comm::PendingCall& one) {
  return static_cast<LaunchedOperation*>(one.operation.get());
}

// A graph runs its operations whenever it is replayed, which nobody tells: a request could not say of which.
void refuseCapture(const comm::PendingCall& one) {
  GpuExecutor& side = sideOf(one);
  if (!one.operation || !side.device().captures(one.stream.cuda)) return;
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("{}: its stream captures a CUDA graph, of whose operations none has a request: call it "
                          "without one, or when the capture has ended",
                          one.call.describe(side.nextNumber(one.call))));
}

// All that a call needs here is its program: links to all ranks stand.
void makeReady(std::span<const comm::PendingCall> calls) {
  for (const comm::PendingCall& one : calls) {
    if (!one.call.onlyReadies) continue;
    sideOf(one).programFor(one.call);
    one.operation->end(comm::Operation::kReadying);
  }
}

// A call and where it stands in the order of launches.
struct Placed {
  const comm::PendingCall* call;
  int round;     // how many calls on the same links come before it
  int distance;  // of a message from sender to receiver; -1: a collective
  int part = 0;  // of the round
};

int distanceOf(const comm::PendingCall& one) {
  if (one.call.collective != Collective::kSendRecv) return -1;
  const int size = one.executor->team().size(), rank = one.executor->team().rank();
  return (one.call.sends ? one.call.root - rank + size : rank - one.call.root + size) % size;
}

std::vector<Placed> place(std::span<const comm::PendingCall> calls) {
  std::map<std::tuple<comm::Executor*, int, bool>, int> seen;  // executor, peer or -1, sends
  std::vector<Placed> placed;
  for (const comm::PendingCall& one : calls) {
    if (one.call.onlyReadies) continue;
    const int distance = distanceOf(one);
    const int peer = distance < 0 ? -1 : one.call.root;
    placed.push_back({&one, seen[{one.executor, peer, distance >= 0 && one.call.sends}]++, distance});
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
    const comm::PendingCall& one = *placed.call;
    GpuExecutor& side = sideOf(one);
    const DeviceProgram& program = side.programFor(one.call);  // throws for what can not be
    if (side.streams(one.call))
      return streamed_.push_back({&side, &one.call, one.stream.cuda, placed.distance, operationOf(one)});
    stays_ = stays_ || device_.captures(one.stream.cuda);
    device::KernelWork work = side.workFor(one.call, program, stays_);
    work.firstBlock = blocks_;
    blocks_ += work.layout.channels;
    works_.push_back(work);
    calls_.push_back({&one, &program});
    if (std::ranges::count(streams_, one.stream.cuda) == 0) streams_.push_back(one.stream.cuda);
    if (std::ranges::count(orders_, &side.order()) == 0) orders_.push_back(&side.order());
    if (one.operation) orders_.push_back(&operationOf(one)->order());
  }

  void prepare() {
    if (works_.empty()) return;
    launch_.count = static_cast<uint32_t>(works_.size());
    if (works_.size() <= device::kMaxInlineWorks)
      std::copy(works_.begin(), works_.end(), launch_.works);
    else
      launch_.more = sideOf(*calls_.front().call).placeWorks(works_, stays_);
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
      if (call->operation) operationOf(*call)->launched(call->call, sideOf(*call).nextNumber(call->call));
      sideOf(*call).launched(call->call, *program, works_[i]);
    }
  }

  device::Device& device_;
  device::KernelLaunch launch_;
  uint32_t blocks_ = 0;
  bool stays_ = false;  // a graph keeps it
  std::vector<device::KernelWork> works_;
  struct Launched {
    const comm::PendingCall* call;
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
  std::map<GpuExecutor*, uint32_t> filled;
  for (auto from = placed.begin(); from != placed.end();) {
    const auto to = std::find_if(from, placed.end(), [&](const Placed& one) {
      return one.round != from->round || one.distance != from->distance;
    });
    std::map<GpuExecutor*, uint32_t> more;
    for (auto one = from; one != to; ++one) {
      GpuExecutor& side = sideOf(*one->call);
      const GpuLayout& shape = side.shape();
      more[&side] += one->distance < 0 ? shape.channels : shape.messageChannels;
    }
    const bool fits = std::ranges::all_of(
        more, [&](const auto& entry) { return filled[entry.first] + entry.second <= entry.first->shape().blocks(); });
    if (!fits || (from != placed.begin() && std::prev(from)->round != from->round)) ++part, filled.clear();
    for (const auto& [side, blocks] : more) filled[side] += blocks;
    for (; from != to; ++from) from->part = part;
  }
}

// What has begun, here and on other ranks, waits for what will not come.
void failAll(std::span<const comm::PendingCall> calls, const Error& error) noexcept {
  for (const comm::PendingCall& one : calls) one.executor->team().fail(error);
}

// Queues all of them as one group, and returns before they run. What was queued before an Error stays queued.
void launchCalls(std::span<const comm::PendingCall> calls) {
  for (const comm::PendingCall& one : calls)
    if (const comm::Team& team = one.executor->team(); team.broken())
      throw team.failure(one.call.describe(sideOf(one).nextNumber(one.call)));
  for (const comm::PendingCall& one : calls) refuseCapture(one);
  makeReady(calls);
  for (const comm::PendingCall& one : calls) sideOf(one).beginGroup();
  std::vector<Placed> placed = place(calls);
  split(placed);
  // GPUs of one process have a launch each.
  std::map<std::pair<int, device::Device*>, Batch> batches;
  for (const Placed& one : placed) {
    device::Device& device = sideOf(*one.call).device();
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

class GpuLauncher final : public comm::GroupLauncher {
 public:
  bool runs() const noexcept override { return false; }
  void launch(std::span<comm::PendingCall> calls) const override { launchCalls(calls); }
};

constinit const GpuLauncher kGpuLauncher;

// In which process a rank is, it says itself, and ranks of one process follow each other's addresses. So nobody gets by
// who names this process and has not joined in it: pools of GPUs' memory and links of kernels rely
// on that. (On the host nothing is followed but a ticket, which cannot be guessed.) It is an error, and not just
// another process, because the others believe it, and ranks that see that differently would choose different
// engines.
void checkProcesses(comm::Team& team) {
  std::set<uint64_t> processes;
  for (const auto& info : team.infos()) processes.insert(info.processToken);
  if (processes.size() == team.infos().size()) return;  // on all ranks, which have the same infos
  team.plane().allGather({}, Deadline::in(team.config().joinTimeout));
  const uint64_t own = team.info(team.rank()).processToken;
  for (int r = 0; r < team.size(); ++r) {
    if (team.info(r).processToken != own || team.plane().isHere(r)) continue;
    const Error error(ErrorCode::kRemote,
                      fmt::format("{} says that it is in the process of {}, which knows nothing of it: it is damaged, "
                                  "or not to be trusted",
                                  team.rankName(r), team.rankName(team.rank())));
    team.tell(control::Stop::kError, error);
    throw error;
  }
}

}  // namespace

std::unique_ptr<comm::Executor> makeGpuExecutor(comm::Team& team) {
  checkProcesses(team);
  return std::make_unique<GpuExecutor>(team, kGpuLauncher, stopping(team));
}

}  // namespace tutti::gpu
