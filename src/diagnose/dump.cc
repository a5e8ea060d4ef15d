#include "diagnose/dump.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/version.h"
#include "diagnose/draft.h"
#include "diagnose/json_writer.h"
#include "process/private_file.h"

namespace tutti::comm {
namespace {

const char* nameOf(CallLine line) noexcept {
  constexpr const char* kNames[] = {"collective", "send", "receive"};
  return kNames[static_cast<size_t>(line)];
}

const char* nameOf(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kCuda:
      return "CUDA error";
    case ErrorCode::kSystem:
      return "system error";
    case ErrorCode::kInternal:
      return "internal error";
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kInvalidUsage:
      return "invalid usage";
    case ErrorCode::kRemote:
      return "remote error";
    case ErrorCode::kInProgress:
      return "in progress";
    case ErrorCode::kTimeout:
      return "timeout";
  }
  return "unknown";
}

void describeRanks(JsonWriter& json, const Team& team) {
  for (int rank = 0; rank < team.size(); ++rank) {
    const topology::PeerInfo& info = team.info(rank);
    json.object([&] {
      json.field("rank", rank);
      json.field("host", info.hostName);
      json.field("pid", info.pid);
    });
  }
}

void describeOperation(JsonWriter& json, const CallRecord& record) {
  const auto& mark = record.fingerprint;
  const auto kind = collectiveOf(mark);
  const auto type = typeOf(mark);
  json.field("number", mark.operation);
  json.field("kind", nameOf(kind));
  json.field("type", nameOf(type));
  json.field("count", mark.count);
  json.field("bytes", mark.count * sizeOf(type));
  if (reduces(kind)) json.field("op", nameOf(static_cast<ReduceOp>(mark.op)));
  if (hasRoot(kind)) json.field("root", mark.root);
}

void describeCall(JsonWriter& json, const CallRecord& record, const Timeline& timeline) {
  json.field("order", record.order);
  json.field("line", nameOf(record.line));
  describeOperation(json, record);
  if (record.peer >= 0) json.field("peer", record.peer);
  if (record.tag != 0) json.field("tag", record.tag);
  json.field("state", nameOf(record.state));
  if (record.algorithm) json.field("algorithm", nameOf(*record.algorithm));
  const bool ended = record.state == CallState::kDone || record.state == CallState::kFailed;
  if (record.waitingFor >= 0 && record.state != CallState::kDone) json.field("waitingFor", record.waitingFor);
  json.field("roundsDone", record.roundsDone);
  json.field("rounds", record.rounds);
  json.field("queuedNs", timeline.wallNs(record.queuedTicks));
  if (ended && record.endedTicks != 0) json.field("endedNs", timeline.wallNs(record.endedTicks));
}

void describeError(JsonWriter& json, const Team& team) {
  if (!team.broken()) return json.null();
  const Error error = team.failure();
  json.object([&] {
    json.field("code", nameOf(error.code()));
    json.field("text", error.what());
  });
}

void describeCommunicator(JsonWriter& json, const Team& team) {
  const topology::PeerInfo& self = team.info(team.rank());
  json.field("id", fmt::format("{:016x}", team.id()));
  json.field("name", team.config().name);
  json.field("rank", team.rank());
  json.field("size", team.size());
  json.field("host", self.hostName);
  json.field("pid", self.pid);
}

void describeVersion(JsonWriter& json) {
  json.field("version", kVersion);
  json.field("format", kDumpFormat);
}

int64_t nowNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void describeAll(JsonWriter& json, Executor& executor, const std::string& why) {
  const Team& team = executor.team();
  json.key("tutti").object([&] { describeVersion(json); });
  json.key("communicator").object([&] { describeCommunicator(json, team); });
  json.key("ranks").array([&] { describeRanks(json, team); });
  json.field("why", why);
  describeError(json.key("error"), team);
  json.field("writtenNs", nowNs());
  executor.note();
  const Recorder& recorder = team.recorder();
  json.key("calls").array([&] {
    for (const CallRecord& record : recorder.records())
      json.object([&] { describeCall(json, record, recorder.timeline()); });
  });
}

}  // namespace

std::string toJson(Executor& executor, const std::string& why) {
  JsonWriter json;
  json.object([&] { describeAll(json, executor, why); });
  return json.take();
}

std::string dumpName(const Team& team) { return fmt::format("tutti-{:016x}-rank{}.json", team.id(), team.rank()); }

namespace {

// What is there would be replaced, and that may be a device of the machine's.
void requireReplaceable(const Team& team, const std::string& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("cannot write the record of rank {} to {}: what is there is no regular file, and would be "
                          "replaced. Name a file of its own",
                          team.rank(), path));
}

}  // namespace

void writeDump(Executor& executor, const std::string& path, const std::string& why) {
  requireReplaceable(executor.team(), path);
  removeOrphans(std::filesystem::path(path).parent_path());
  const std::string draft = draftOf(path);
  int error = writePrivateFile(AT_FDCWD, draft, toJson(executor, why));
  if (error == 0 && std::rename(draft.c_str(), path.c_str()) != 0) {
    error = errno;
    std::remove(draft.c_str());
  }
  if (error != 0)
    throw systemError(fmt::format("cannot write the record of rank {} to {}", executor.team().rank(), path), error);
}

}  // namespace tutti::comm
