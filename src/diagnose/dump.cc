#include "diagnose/dump.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "diagnose/draft.h"
#include "process/private_file.h"

namespace tutti::comm {
namespace {

using Json = nlohmann::ordered_json;

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

Json describeRanks(const Team& team) {
  Json ranks = Json::array();
  for (int rank = 0; rank < team.size(); ++rank) {
    const topology::PeerInfo& info = team.info(rank);
    ranks.push_back({{"rank", rank}, {"host", info.hostName}, {"pid", info.pid}});
  }
  return ranks;
}

Json describeCall(const CallRecord& record, const Timeline& timeline) {
  const auto& mark = record.fingerprint;
  const auto kind = collectiveOf(mark);
  const auto type = typeOf(mark);
  Json call = {{"order", record.order},
               {"line", nameOf(record.line)},
               {"number", mark.operation},
               {"kind", nameOf(kind)},
               {"type", nameOf(type)},
               {"count", mark.count},
               {"bytes", mark.count * sizeOf(type)}};
  if (reduces(kind)) call["op"] = nameOf(static_cast<ReduceOp>(mark.op));
  if (hasRoot(kind)) call["root"] = mark.root;
  if (record.peer >= 0) call["peer"] = record.peer;
  if (record.tag != 0) call["tag"] = record.tag;
  call["state"] = nameOf(record.state);
  if (record.algorithm) call["algorithm"] = nameOf(*record.algorithm);
  const bool ended = record.state == CallState::kDone || record.state == CallState::kFailed;
  if (record.waitingFor >= 0 && record.state != CallState::kDone) call["waitingFor"] = record.waitingFor;
  call["roundsDone"] = record.roundsDone;
  call["rounds"] = record.rounds;
  call["queuedNs"] = timeline.wallNs(record.queuedTicks);
  if (ended && record.endedTicks != 0) call["endedNs"] = timeline.wallNs(record.endedTicks);
  return call;
}

Json describeError(const Team& team) {
  if (!team.broken()) return nullptr;
  const Error error = team.failure();
  return {{"code", nameOf(error.code())}, {"text", error.what()}};
}

}  // namespace

std::string toJson(Executor& executor, const std::string& why) {
  const Team& team = executor.team();
  const topology::PeerInfo& self = team.info(team.rank());
  Json root;
  root["tutti"] = {{"version", kVersion}, {"format", kDumpFormat}};
  root["communicator"] = {{"id", fmt::format("{:016x}", team.id())},
                          {"name", team.config().name},
                          {"rank", team.rank()},
                          {"size", team.size()},
                          {"host", self.hostName},
                          {"pid", self.pid}};
  root["ranks"] = describeRanks(team);
  root["why"] = why;
  root["error"] = describeError(team);
  root["writtenNs"] =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  executor.note();
  Json calls = Json::array();
  const Recorder& recorder = team.recorder();
  for (const CallRecord& record : recorder.records()) calls.push_back(describeCall(record, recorder.timeline()));
  root["calls"] = std::move(calls);
  // Host names and texts come from outside: what is no UTF-8 is replaced, not thrown at.
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
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
