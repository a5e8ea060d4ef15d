#include "doctor/spans.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tutti::doctor {

std::vector<Span> spansOf(const Record& record) {
  std::map<std::pair<Line, int>, int64_t> freeFrom;
  std::vector<Span> spans;
  for (const Call& call : record.calls) {
    int64_t& from = freeFrom[{call.line, call.peer.value_or(-1)}];
    const int64_t begin = std::max(call.queuedNs, from);
    const int64_t end = std::max(begin, call.endedNs.value_or(record.writtenNs));
    spans.push_back({&call, begin, end});
    from = end;
  }
  return spans;
}

}  // namespace tutti::doctor
