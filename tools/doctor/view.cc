#include "doctor/view.h"

#include <algorithm>

namespace tutti::doctor {

View::View(const Job& job)
    : job_(job),
      anyFailure_(std::any_of(job.records.begin(), job.records.end(), [](const Record& one) { return one.failure; })),
      byRank_(static_cast<size_t>(job.size)) {
  for (const Record& record : job.records) {
    byRank_[static_cast<size_t>(record.rank)] = &record;
    for (const Call& call : record.calls)
      if (call.line == Line::kCollective) collectives_[call.number].push_back({record.rank, &call});
  }
  for (int rank = 0; rank < job.size; ++rank)
    if (!record(rank)) missing_.push_back(rank);
}

const Call* View::lastCollective(int rank) const noexcept {
  const auto& calls = record(rank)->calls;
  const auto last =
      std::find_if(calls.rbegin(), calls.rend(), [](const Call& call) { return call.line == Line::kCollective; });
  return last == calls.rend() ? nullptr : &*last;
}

const Call* View::lastCall(int rank) const noexcept {
  const auto& calls = record(rank)->calls;
  return calls.empty() ? nullptr : &calls.back();
}

const Call* View::current(int rank) const noexcept {
  const auto& calls = record(rank)->calls;
  const auto first = [&](auto matches) {
    const auto at = std::find_if(calls.begin(), calls.end(), matches);
    return at == calls.end() ? nullptr : &*at;
  };
  if (const Call* under = first([](const Call& call) { return !call.done() && call.waitingFor; })) return under;
  if (const Call* under = first([](const Call& call) { return !call.done() && call.state != State::kQueued; }))
    return under;
  return first([](const Call& call) { return !call.done(); });
}

int64_t timeIn(const Record& record, const Call& call) noexcept {
  const int64_t until = call.endedNs.value_or(record.writtenNs);
  return until > call.queuedNs ? until - call.queuedNs : 0;
}

}  // namespace tutti::doctor
