#include "doctor/diagnose.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/finders.h"
#include "doctor/view.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

bool explained(const Findings& findings) {
  return std::ranges::any_of(findings, [](const Finding& one) {
    return one.kind <= FindingKind::kStuck && one.kind != FindingKind::kNoRecord;
  });
}

// A mismatch that one of its ranks has found, whose other side left no record: the error alone has both calls. Of all
// that stops a communicator only calls that differ are an invalid usage.
void findToldMismatch(const View& view, Findings& findings) {
  const auto& records = view.job().records;
  const auto found = std::ranges::find_if(
      records, [](const Record& record) { return record.failure && record.failure->code == "invalid usage"; });
  if (found != records.end())
    findings.push_back(
        {FindingKind::kToldMismatch, {}, fmt::format("rank {} found that {}", found->rank, found->failure->text)});
}

// An error that nothing in the calls explains; that a rank left no record explains none.
void findErrors(const View& view, Findings& findings) {
  const char* lead = findings.empty() ? "the calls agree, but " : "";
  for (const Record& record : view.job().records)
    if (record.failure)
      return findings.push_back(
          {FindingKind::kError,
           {},
           fmt::format("{}rank {} failed: {}: {}", lead, record.rank, record.failure->code, record.failure->text)});
}

std::string underWay(const View& view) {
  for (const Record& record : view.job().records)
    if (const Call* call = view.current(record.rank))
      return fmt::format("calls are under way, such as {} on rank {}, for {}", describe(*call), record.rank,
                         timeText(timeIn(record, *call)));
  return "";
}

// Nobody waits. Then the ranks are where they should be, but some may be ahead: a root need not wait for the others.
std::string inStep(const View& view) {
  const auto numberOf = [&](const Record& record) {
    const Call* last = view.lastCollective(record.rank);
    return last ? static_cast<int64_t>(last->number) : -1;
  };
  const auto& records = view.job().records;
  const auto [least, most] = std::minmax_element(
      records.begin(), records.end(), [&](const Record& a, const Record& b) { return numberOf(a) < numberOf(b); });
  const Call* last = view.lastCollective(most->rank);
  if (!last) return "no rank is in a call, and none has made a collective";
  if (numberOf(*least) == numberOf(*most))
    return fmt::format("all ranks are idle and in step: the last collective of each is {}, done", describe(*last));
  return fmt::format("no rank is in a call; rank {} has come as far as {}, rank {} {}", most->rank, title(*last),
                     least->rank, lastWords(view, least->rank));
}

void findNothing(const View& view, Findings& findings) {
  const std::string calls = underWay(view);
  if (calls.empty())
    findings.push_back({FindingKind::kHealthy, {}, inStep(view)});
  else
    findings.push_back({FindingKind::kRunning, {}, calls});
}

}  // namespace

Diagnosis diagnose(const Job& job) {
  const View view(job);
  Findings findings;
  findOtherCollectives(view, findings);
  findOtherMessages(view, findings);
  if (findings.empty()) findToldMismatch(view, findings);
  // Calls that differ make everybody wait, and errors everywhere: what follows from them need not be told.
  if (findings.empty()) {
    findDepartures(view, findings);
    const bool known = !findings.empty();
    findAbsent(view, findings);
    findLonelyMessages(view, findings);
    if (!known) findChains(view, findings);
  }
  if (!explained(findings)) findErrors(view, findings);
  if (findings.empty()) findNothing(view, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.kind < b.kind; });
  return {std::move(findings)};
}

}  // namespace tutti::doctor
