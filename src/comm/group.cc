#include "comm/group.h"

#include <algorithm>

namespace tutti::comm {
namespace {

// What one stream gets of a group.
struct Batch {
  explicit Batch(size_t most) {
    communicators.reserve(most);
    tasks.reserve(most);
  }
  void add(PendingCall&& pending, bool blocking) noexcept {
    tasks.emplace_back(*pending.communicator, std::move(pending.call), blocking);
    communicators.push_back(std::move(pending.communicator));
  }
  std::vector<std::shared_ptr<Communicator>> communicators;  // kept alive until the batch is done
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

}  // namespace

void runCall(Communicator& communicator, Call call) {
  Task task(communicator, std::move(call), true);
  runTask(task);
}

void queueCall(const std::shared_ptr<Communicator>& communicator, Call call, engine::Stream& stream) {
  const auto batch = std::make_shared<Batch>(1);
  auto job = jobOf(batch);
  batch->add({communicator, std::move(call), {}}, false);
  stream.submit(std::move(job));
}

// Whoever makes a task has taken its turn, and every later call waits for it: what could fail for lack of memory comes
// before the first.
void runCalls(std::vector<PendingCall> calls) {
  Batch mine(calls.size());
  std::vector<StreamsPart> parts;
  for (const PendingCall& pending : calls)
    if (pending.stream && findPart(parts, pending.stream) == parts.end()) {
      const auto count = std::ranges::count(calls, pending.stream, &PendingCall::stream);
      auto batch = std::make_shared<Batch>(static_cast<size_t>(count));
      parts.push_back({pending.stream, batch, jobOf(batch)});
    }
  for (PendingCall& pending : calls) {
    Batch& batch = pending.stream ? *findPart(parts, pending.stream)->batch : mine;
    batch.add(std::move(pending), !pending.stream);
  }
  for (StreamsPart& part : parts) part.stream->submit(std::move(part.job));
  runTasks(mine.tasks);
}

}  // namespace tutti::comm
