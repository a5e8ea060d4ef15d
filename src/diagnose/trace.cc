#include "diagnose/trace.h"

#include <fmt/format.h>

#include <string>

#include "base/data_type.h"
#include "base/ticks.h"
#include "diagnose/trace_file.h"

namespace tutti::comm {
namespace {

// Shorter ones are the way of every message.
constexpr int64_t kShortestWaitNs = 1000;

std::string argumentsOf(const CallRecord& call, int64_t queuedForNs) {
  const link::Fingerprint& mark = call.fingerprint;
  const DataType type = typeOf(mark);
  std::string text = fmt::format(R"("type":"{}","count":{},"bytes":{},"queued us":{:.3f})", nameOf(type), mark.count,
                                 mark.count * sizeOf(type), static_cast<double>(queuedForNs) / 1000);
  if (mark.planned()) text += fmt::format(R"(,"plan":"{}")", describePlan(mark));
  if (call.tag != 0) text += fmt::format(R"(,"tag":{})", call.tag);
  if (call.blocking) text += R"(,"blocking":true)";
  if (call.state == CallState::kFailed) text += R"(,"failed":true)";
  return text;
}

std::string nameOfCall(const CallRecord& call) {
  if (call.line == CallLine::kCollective)
    return fmt::format("{} #{}", nameOf(collectiveOf(call.fingerprint)), call.fingerprint.operation);
  return fmt::format("{} #{}", call.line == CallLine::kSend ? "send" : "receive", call.fingerprint.operation);
}

}  // namespace

std::unique_ptr<Trace> Trace::of(const Team& team) {
  if (team.config().traceFile.empty()) return nullptr;
  TraceFile::instance().open(team.config().traceFile);
  return std::unique_ptr<Trace>(new Trace(team));
}

Trace::~Trace() { TraceFile::instance().flush(); }

void Trace::ended(const CallRecord& call, uint64_t begun) noexcept try {
  const Timeline& timeline = team_.recorder().timeline();
  const int64_t begin = timeline.wallNs(begun), end = timeline.wallNs(call.endedTicks);
  TraceFile::instance().add(trackOf({call.line, call.peer}), nameOfCall(call), begin, end,
                            argumentsOf(call, begin - timeline.wallNs(call.queuedTicks)));
} catch (const std::exception&) {
}

void Trace::waited(const TraceRow& row, int peer, uint64_t from, uint64_t to) noexcept try {
  const Timeline& timeline = team_.recorder().timeline();
  const int64_t begin = timeline.wallNs(from), end = timeline.wallNs(to);
  if (end - begin < kShortestWaitNs) return;
  TraceFile::instance().add(trackOf(row), fmt::format("wait for rank {}", peer), begin, end,
                            fmt::format(R"("peer":{})", peer));
} catch (const std::exception&) {
}

int Trace::trackOf(const TraceRow& row) {
  const std::lock_guard lock(mutex_);
  int& track = tracks_[row];
  if (track == 0) track = TraceFile::instance().newTrack(nameOf(row));
  return track;
}

std::string Trace::nameOf(const TraceRow& row) const {
  std::string name = fmt::format("rank {} of {}, communicator {:x}: ", team_.rank(), team_.size(), team_.id());
  if (row.line == CallLine::kCollective)
    name += "collectives";
  else
    name += fmt::format("{} rank {}", row.line == CallLine::kSend ? "sends to" : "receives from", row.peer);
  return row.channel < 0 ? name : name + fmt::format(", waits of channel {}", row.channel);
}

LaneWaits::LaneWaits(Trace& trace, const Call& call, size_t lanes)
    : trace_(trace), row_{lineOf(call), call.collective == Collective::kSendRecv ? call.root : -1}, open_(lanes) {}

// A wait ends when its lane has gone on, though it may wait for the same rank again.
void LaneWaits::look(size_t channel, int peer, uint64_t position) noexcept {
  Wait& open = open_[channel];
  if (open.peer == peer && open.position == position) return;
  const uint64_t now = readTicks();
  row_.channel = static_cast<int>(channel);
  if (open.peer >= 0) trace_.waited(row_, open.peer, open.since, now);
  open = {peer, position, now};
}

}  // namespace tutti::comm
