// What is told without doing anything: who this process is, and how a call would run.
#include <fmt/format.h>

#include <string>

#include "api/check.h"
#include "api/guard.h"
#include "api/sized.h"
#include "comm/explanation_json.h"
#include "launch/launcher.h"

using namespace tutti;
using namespace tutti::api;

namespace {

tuttiLaunch_t launchOf(const control::LaunchInfo& told) {
  tuttiLaunch_t launch = {};
  launch.rank = told.rank, launch.ranks = told.size;
  launch.localRank = told.localRank, launch.localRanks = told.localSize;
  launch.oneHost = told.oneHost;
  launch.rootPort = told.rootPort;
  copyText(launch.rootHost, told.rootHost.value_or(""));
  copyText(launch.launcher, told.launcher);
  copyText(launch.source, told.source);
  copyText(launch.job, told.jobKey);
  return launch;
}

Collective collectiveOf(const std::string& name, const char* call) {
  std::string known;
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    // Of a message there is nothing to choose; a v-variant is run as the plain one.
    if (collective == Collective::kSendRecv ||
        (plainOf(collective) != collective && collective != Collective::kBarrier))
      continue;
    if (name == nameOf(collective)) return collective;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", nameOf(collective));
  }
  invalid(call, fmt::format("collective is {}: choose one of {}", name, known));
}

// What is asked about, of the communicator that the visit is to.
comm::Call askedCall(const char* name, const tuttiComm& comm, const char* collective, size_t count,
                     tuttiDataType_t type) {
  checkPointer(collective, name, "collective");
  comm::Call call;
  call.collective = collectiveOf(collective, name);
  call.type = checkType(type, name);
  call.count = count;
  checkBytes(count, static_cast<size_t>(comm.size), call.type, name);
  return call;
}

}  // namespace

extern "C" {

tuttiResult_t tuttiGetLaunch(tuttiLaunch_t* launch) {
  const char* name = "tuttiGetLaunch";
  return guarded(nullptr, [&] {
    checkSized(launch, name, "launch", "tuttiLaunch_t");
    fillSized(launch, launchOf(control::readLaunch()));
  });
}

tuttiResult_t tuttiCommExplain(tuttiComm_t comm, const char* collective, size_t count, tuttiDataType_t type, char* text,
                               size_t room) {
  const char* name = "tuttiCommExplain";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    checkPointer(text, name, "text");
    if (room == 0) invalid(name, "room is 0: a text has at least its final byte");
    const comm::Call call = askedCall(name, *comm, collective, count, type);
    copyText(text, room, textOf(visit->executor().explain(call)));
  });
}

tuttiResult_t tuttiCommExplainJson(tuttiComm_t comm, const char* collective, size_t count, tuttiDataType_t type,
                                   char* json, size_t room, size_t* length) {
  const char* name = "tuttiCommExplainJson";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    if (json == nullptr && length == nullptr) invalid(name, "json and length are NULL: there is nothing to tell");
    const comm::Call call = askedCall(name, *comm, collective, count, type);
    const std::string text = comm::toJson(visit->executor().explain(call), call, comm->size);
    if (length != nullptr) *length = text.size();
    if (json == nullptr) return;
    if (room <= text.size())
      invalid(name, fmt::format("room is {}: the text takes {} bytes with its final 0", room, text.size() + 1));
    copyText(json, room, text);
  });
}

}  // extern "C"
