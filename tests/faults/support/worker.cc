#include "faults/support/worker.h"

#include <fmt/format.h>

#include <memory>

namespace tutti::faults {
namespace {

// The thread's last error, for a call that has just failed.
Trouble troubleOf(tuttiResult_t result, uint64_t operation, int communicator, const std::string& what) {
  return {operation, communicator, result,
          fmt::format("{}: {}: {}", what, tuttiGetErrorString(result), tuttiGetLastError(nullptr)), false};
}

}  // namespace

struct Worker::Running {
  std::unique_ptr<Part> part;
  Operation operation;
  uint64_t number = 0;
  const Item* item = nullptr;
};

Worker::Worker(const SessionSpec& session, int rank, tuttiConfig_t config, Prepare prepare)
    : session_(session), rank_(rank), config_(config), prepare_(std::move(prepare)) {}

std::optional<Trouble> Worker::open(const std::vector<tuttiUniqueId>& ids) {
  streams_.resize(static_cast<size_t>(session_.streams));
  for (auto& stream : streams_)
    if (const auto result = tuttiStreamCreate(&stream, 0)) return troubleOf(result, 0, -1, "tuttiStreamCreate");
  for (size_t i = 0; i < session_.communicators.size(); ++i)
    if (auto trouble = openOne(i, ids[i])) return trouble;
  return std::nullopt;
}

std::optional<Trouble> Worker::openOne(size_t index, const tuttiUniqueId& id) {
  const CommunicatorSpec& spec = session_.communicators[index];
  tuttiConfig_t config = config_;
  config.transports = spec.transports.c_str();
  config.channels = spec.channels;
  if (!spec.algorithm.empty()) config.algorithm = spec.algorithm.c_str();
  config.encrypt = spec.sealed;
  Member made;
  const Member parent = spec.parent < 0 ? Member{} : members_[static_cast<size_t>(spec.parent)];
  const int color = spec.parent < 0 ? 0 : spec.colorOf(parent.rank);
  made.branch = parent.branch * 4 + static_cast<uint64_t>(color + 1);
  if (prepare_) prepare_(mix(index, made.branch), spec.salt);
  tuttiResult_t result = tuttiSuccess;
  if (spec.parent < 0)
    result = tuttiCommInitRankConfig(&made.comm, session_.ranks, id, rank_, &config);
  else if (parent.comm)
    result = tuttiCommSplit(parent.comm, color, 0, &made.comm, &config);
  if (result != tuttiSuccess)
    return troubleOf(result, 0, static_cast<int>(index), fmt::format("making communicator {}", index));
  if (made.comm) {
    tuttiCommUserRank(made.comm, &made.rank);
    tuttiCommCount(made.comm, &made.size);
  }
  members_.push_back(made);
  return std::nullopt;
}

std::optional<Trouble> Worker::close() {
  std::optional<Trouble> trouble;
  for (auto& member : members_)
    if (member.comm)
      if (const auto result = tuttiCommDestroy(member.comm))
        trouble = troubleOf(result, operations_, -1, "tuttiCommDestroy");
  for (auto stream : streams_)
    if (stream) tuttiStreamDestroy(stream);
  members_.clear();
  streams_.clear();
  return trouble;
}

std::vector<Worker::Running> Worker::prepare(const Step& step) {
  std::vector<Running> running;
  for (const Item& item : step.items) {
    const Member& member = members_[static_cast<size_t>(item.communicator)];
    Running now{nullptr, item.operation, operations_++, &item};
    if (!member.comm) continue;
    now.operation.root %= member.size;
    now.part = std::make_unique<Part>(now.operation, member.rank, member.size);
    running.push_back(std::move(now));
  }
  return running;
}

void Worker::note(std::optional<Trouble>& trouble, tuttiResult_t result, uint64_t operation, int communicator,
                  const std::string& what) const {
  if (result == tuttiSuccess || trouble) return;
  trouble = troubleOf(result, operation, communicator, what);
  if (alarm_) alarm_();
}

// Stops at the first failure; but a group that was opened must be closed.
std::optional<Trouble> Worker::issue(const Step& step, std::vector<Running>& running) {
  std::optional<Trouble> trouble;
  if (step.grouped) note(trouble, tuttiGroupStart(), operations_, -1, "tuttiGroupStart");
  for (Running& now : running) {
    const tuttiStream_t stream = now.item->stream < 0 ? nullptr : streams_[static_cast<size_t>(now.item->stream)];
    const int index = now.item->communicator;
    note(trouble, now.part->issue(members_[static_cast<size_t>(index)].comm, stream), now.number, index,
         now.operation.describe());
    if (trouble) break;
  }
  if (step.grouped) note(trouble, tuttiGroupEnd(), operations_ - 1, -1, "tuttiGroupEnd");
  return trouble;
}

std::optional<Trouble> Worker::runStep(const Step& step) {
  auto running = prepare(step);
  std::optional<Trouble> trouble = issue(step, running);
  for (auto stream : streams_)
    note(trouble, tuttiStreamSynchronize(stream), operations_ - 1, -1, "tuttiStreamSynchronize");
  if (trouble) return trouble;
  for (Running& now : running)
    if (const std::string wrong = now.part->check(); !wrong.empty())
      return Trouble{now.number, now.item->communicator, tuttiSuccess,
                     fmt::format("{}: {}", now.operation.describe(), wrong), true};
  for (const Running& now : running)
    if (now.operation.rounds && now.operation.kind == Kind::kAllReduce)
      if (auto different = compareWithOthers(now)) return different;
  return std::nullopt;
}

// By an all-gather, whose own result is compared elsewhere.
std::optional<Trouble> Worker::compareWithOthers(const Running& now) {
  const Member& member = members_[static_cast<size_t>(now.item->communicator)];
  const uint64_t mine = now.part->digest();
  std::vector<uint64_t> all(static_cast<size_t>(member.size));
  std::optional<Trouble> trouble;
  note(trouble, tuttiAllGather(&mine, all.data(), 1, tuttiUint64, member.comm, nullptr), now.number,
       now.item->communicator, "an all-gather of digests");
  for (size_t rank = 0; rank < all.size() && !trouble; ++rank)
    if (all[rank] != mine)
      return Trouble{now.number, now.item->communicator, tuttiSuccess,
                     fmt::format("{}: rank {} of the communicator has other bits than this one, rank {}",
                                 now.operation.describe(), rank, member.rank),
                     true};
  return trouble;
}

}  // namespace tutti::faults
