#include "comm/group.h"

#include <algorithm>

namespace tutti::comm {
namespace {

// What one stream gets of a group. Shared, because a job is copied into the queue.
struct Batch {
  std::vector<std::shared_ptr<Communicator>> communicators;  // kept alive until the batch is done
  std::vector<Task> tasks;
};

void add(Batch& batch, PendingCall& pending) {
  batch.tasks.emplace_back(*pending.communicator, std::move(pending.call), !pending.stream);
  batch.communicators.push_back(pending.communicator);
}

}  // namespace

void runCall(Communicator& communicator, Call call) {
  Task task(communicator, std::move(call), true);
  runTask(task);
}

void queueCall(const std::shared_ptr<Communicator>& communicator, Call call, engine::Stream& stream) {
  auto task = std::make_shared<Task>(*communicator, std::move(call), false);
  stream.submit([communicator, task] { runTask(*task); });
}

void runCalls(std::vector<PendingCall> calls) {
  Batch mine;
  std::vector<std::pair<std::shared_ptr<engine::Stream>, std::shared_ptr<Batch>>> batches;
  for (PendingCall& pending : calls) {
    if (!pending.stream) {
      add(mine, pending);
      continue;
    }
    auto found = std::find_if(batches.begin(), batches.end(), [&](auto& b) { return b.first == pending.stream; });
    if (found == batches.end()) {
      batches.emplace_back(pending.stream, std::make_shared<Batch>());
      found = std::prev(batches.end());
    }
    add(*found->second, pending);
  }
  for (auto& [stream, batch] : batches) stream->submit([batch = batch] { runTasks(batch->tasks); });
  runTasks(mine.tasks);
}

}  // namespace tutti::comm
