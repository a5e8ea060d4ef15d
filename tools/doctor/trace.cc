#include "doctor/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "doctor/spans.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A track number is a line's number times this, plus the lane.
constexpr int kLanes = 1 << 20;

OrderedJson nameEvent(const char* what, int process, int track, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

OrderedJson argumentsOf(const Call& call) {
  OrderedJson args = {
      {"number", call.number}, {"type", tutti::nameOf(call.type)}, {"count", call.count}, {"bytes", call.bytes}};
  if (call.op) args["op"] = tutti::nameOf(*call.op);
  if (call.root) args["root"] = *call.root;
  if (call.tag != 0) args["tag"] = call.tag;
  if (call.peer) args["peer"] = *call.peer;
  if (!call.algorithm.empty()) args["algorithm"] = call.algorithm;
  args["state"] = nameOf(call.state);
  if (call.waitingFor) args["waitingFor"] = *call.waitingFor;
  args["rounds"] = fmt::format("{} of {}", call.roundsDone, call.rounds);
  return args;
}

// The viewers draw only events that nest. Messages with several peers may overlap in any way: each takes the first lane
// that is free.
class Tracks {
 public:
  int place(const Span& span) {
    auto& lanes = lanes_[static_cast<size_t>(span.call->line)];
    const auto free = std::find_if(lanes.begin(), lanes.end(), [&](int64_t until) { return until <= span.beginNs; });
    const auto lane = free - lanes.begin();
    if (free == lanes.end()) lanes.push_back(0);
    lanes[static_cast<size_t>(lane)] = span.endNs;
    return static_cast<int>(span.call->line) * kLanes + static_cast<int>(lane);
  }

  void describe(int process, OrderedJson& events) const {
    constexpr const char* kNames[] = {"collectives", "sends", "receives"};
    for (size_t line = 0; line < std::size(kNames); ++line)
      for (size_t lane = 0; lane < lanes_[line].size(); ++lane)
        events.push_back(nameEvent("thread_name", process, static_cast<int>(line) * kLanes + static_cast<int>(lane),
                                   lane == 0 ? kNames[line] : fmt::format("{} ({})", kNames[line], lane + 1)));
  }

 private:
  std::vector<int64_t> lanes_[3];
};

double microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

void addRecord(const Job& job, const Record& record, int process, int64_t startNs, OrderedJson& events) {
  const std::string of = job.name.empty() ? "" : fmt::format(" of {}", job.name);
  events.push_back(nameEvent("process_name", process, 0, nameOf(job, record.rank) + of));
  events.push_back(
      {{"ph", "M"}, {"name", "process_sort_index"}, {"pid", process}, {"tid", 0}, {"args", {{"sort_index", process}}}});
  std::vector<Span> spans = spansOf(record);
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.beginNs < b.beginNs; });
  Tracks tracks;
  for (const Span& span : spans)
    events.push_back({{"ph", "X"},
                      {"cat", nameOf(span.call->line)},
                      {"name", title(*span.call)},
                      {"pid", process},
                      {"tid", tracks.place(span)},
                      {"ts", microseconds(span.beginNs - startNs)},
                      {"dur", microseconds(span.lengthNs())},
                      {"args", argumentsOf(*span.call)}});
  tracks.describe(process, events);
}

// Times count from the first call: a double has no room for nanoseconds since 1970.
int64_t startOf(const std::vector<Job>& jobs) {
  int64_t start = std::numeric_limits<int64_t>::max();
  for (const Job& job : jobs)
    for (const Record& record : job.records)
      for (const Call& call : record.calls) start = std::min(start, call.queuedNs);
  return start == std::numeric_limits<int64_t>::max() ? 0 : start;
}

}  // namespace

std::string toTrace(const std::vector<Job>& jobs) {
  const int64_t start = startOf(jobs);
  OrderedJson events = OrderedJson::array();
  int process = 0;
  for (const Job& job : jobs)
    for (const Record& record : job.records) addRecord(job, record, process++, start, events);
  const OrderedJson trace = {{"displayTimeUnit", "ns"},
                             {"otherData", {{"startNs", std::to_string(start)}}},
                             {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace tutti::doctor
