#include "comm/host_executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/at_once.h"
#include "comm/task.h"
#include "plan/profile_file.h"
#include "schedule/row.h"

namespace tutti::comm {
namespace {

HostState& stateOf(const PendingCall& pending) { return static_cast<HostExecutor&>(*pending.executor).state(); }

// What one stream gets of a group.
struct Batch {
  explicit Batch(size_t most) {
    kept.reserve(most);
    tasks.reserve(most);
  }
  void add(PendingCall&& pending, bool blocking) noexcept {
    Operation* const operation = pending.operation.get();
    if (operation != nullptr) operation->take(partOf(pending.call));
    tasks.emplace_back(stateOf(pending), std::move(pending.call), blocking, operation);
    kept.push_back({std::move(pending.keeper), std::move(pending.operation)});
  }
  struct Kept {
    std::shared_ptr<const void> keeper;
    std::shared_ptr<Operation> operation;
  };
  std::vector<Kept> kept;  // until the batch is done
  std::vector<Task> tasks;
};

engine::Stream::Job jobOf(const std::shared_ptr<Batch>& batch) {
  return engine::Stream::job([batch] { runTasks(batch->tasks); });
}

struct StreamsPart {
  std::shared_ptr<engine::Stream> stream;
  std::shared_ptr<Batch> batch;  // shared, because a std::function can be copied
  engine::Stream::Job job;
};

auto findPart(std::vector<StreamsPart>& parts, const std::shared_ptr<engine::Stream>& stream) {
  return std::ranges::find(parts, stream, &StreamsPart::stream);
}

// Side by side: those without a stream here, to their end.
class HostLauncher final : public GroupLauncher {
 public:
  bool runs() const noexcept override { return true; }
  void launch(std::span<PendingCall> calls) const override;
};

// Whoever makes a task has taken its turn, and every later call waits for it: what could fail for lack of memory comes
// before the first.
void HostLauncher::launch(std::span<PendingCall> calls) const {
  Batch mine(calls.size());
  std::vector<StreamsPart> parts;
  const auto streamOf = [](const PendingCall& pending) -> const auto& { return pending.stream.host; };
  for (const PendingCall& pending : calls)
    if (streamOf(pending) && findPart(parts, streamOf(pending)) == parts.end()) {
      engine::requireStreams();
      const auto count = std::ranges::count(calls, streamOf(pending), streamOf);
      auto batch = std::make_shared<Batch>(static_cast<size_t>(count));
      parts.push_back({streamOf(pending), batch, jobOf(batch)});
    }
  for (PendingCall& pending : calls) {
    const bool here = !pending.stream.host;
    Batch& batch = here ? mine : *findPart(parts, pending.stream.host)->batch;
    batch.add(std::move(pending), here);
  }
  for (StreamsPart& part : parts) part.stream->submit(std::move(part.job));
  runTasks(mine.tasks);
}

constinit const HostLauncher kHostLauncher;

void runToItsEnd(Task&& task) { runTasks({&task, 1}); }

}  // namespace

HostExecutor::HostExecutor(Team& team) : Executor(team, kHostLauncher, {}), state_(team) {}

// Where a socket is written or read the thread may be cancelled.
Again HostExecutor::again(const Call& call) noexcept {
  const BoundPlan* const plan = call.readied == nullptr ? nullptr : call.readied->plan;
  if (plan == nullptr || plan->bindings.front().hasDrivers) return Again::kNot;
  return runAtOnce(state_, call, begun_);
}

void HostExecutor::goOn(const Call& call) { runToItsEnd(Task(state_, Call(call), begun_)); }

void HostExecutor::run(const Call& call) {
  switch (runAtOnce(state_, call, begun_)) {
    case Again::kDone:
      return;
    case Again::kGoesOn:
      return goOn(call);
    case Again::kNot:
      return runToItsEnd(Task(state_, Call(call), true));
  }
}

void HostExecutor::queue(PendingCall call) {
  engine::requireStreams();
  const auto stream = call.stream.host;
  const auto batch = std::make_shared<Batch>(1);
  auto job = jobOf(batch);
  batch->add(std::move(call), false);
  stream->submit(std::move(job));
}

// Links over devices may keep it registered there.
void HostExecutor::addBuffer(const void* handle, const Range& buffer) {
  buffers_.try_emplace(handle, buffer.begin, buffer.bytes);
}

Stats HostExecutor::stats() const {
  Stats stats;
  stats.memoryBytes = state_.links().memoryBytes() + state_.plans().memoryBytes();
  stats.connectedPeers = state_.links().connectedPeers();
  stats.operations = state_.operations();
  stats.directSlots = state_.plans().directSlots();
  stats.lastAlgorithm = nameOf(state_.plans().lastAlgorithm());
  stats.lastTransports = state_.links().transportNames();
  return stats;
}

std::string HostExecutor::foresee(const Call& call) const {
  const plan::Choice choice = state_.plans().foresee(call);
  const std::string name(nameOf(choice.algorithm));
  return choice.channels == 1 ? name : fmt::format("{}, {} channels", name, choice.channels);
}

Explanation HostExecutor::explain(const Call& call) const {
  const plan::Plan plan = state_.plans().weigh(call);
  const plan::Profile& prices = state_.plans().prices();
  Explanation explanation{
      candidateOf(plan.best), {}, plan.excluded, waysOf(team(), state_.links(), prices), plan::originOf(prices)};
  for (const plan::Choice& choice : plan.others) explanation.others.push_back(candidateOf(choice));
  return explanation;
}

Rows HostExecutor::describe() const {
  Rows rows{{"buffers", "in host memory"}};
  const Placement& placement = state_.plans().placement();
  if (placement.chain.empty()) return rows;
  const schedule::Row chain({}, placement.chain);
  rows.emplace_back("chain order", fmt::format("by {}: {}{}", chain.byNumbers() ? "the numbers" : "shared cores",
                                               schedule::textOf(chain, team().size()),
                                               placement.bothWays ? ", both ways from a root" : ""));
  if (const int cores = placement.cores(); cores != 0)
    rows.emplace_back("hosts of hierarchical",
                      fmt::format("{} shared cores, {} ranks each", cores, team().size() / cores));
  return rows;
}

}  // namespace tutti::comm
