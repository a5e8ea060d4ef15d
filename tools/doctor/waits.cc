#include <fmt/format.h>

#include <algorithm>

#include "doctor/finders.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

// What ranks wait in: the first collective that somebody has not finished.
struct Frontier {
  const Call* call = nullptr;
  std::vector<int> waiting;
  int64_t firstNs = 0, longestNs = 0;  // when it was first made, and how long somebody has been in it
};

Frontier frontierOf(const View& view) {
  Frontier frontier;
  for (const auto& [number, entries] : view.collectives()) {
    for (const auto& [rank, call] : entries) {
      if (call->done()) continue;
      if (frontier.waiting.empty()) frontier.firstNs = call->queuedNs;
      frontier.call = call;
      frontier.waiting.push_back(rank);
      frontier.firstNs = std::min(frontier.firstNs, call->queuedNs);
      frontier.longestNs = std::max(frontier.longestNs, timeIn(*view.record(rank), *call));
    }
    if (frontier.call) break;
  }
  return frontier;
}

std::string waitersOf(const Frontier& frontier) {
  return fmt::format("{}, in which {} {}", describe(*frontier.call), namesOf(frontier.waiting),
                     agree(frontier.waiting, "waits", "wait"));
}

std::string detailsOf(const View& view, const std::vector<int>& ranks) {
  constexpr size_t kMostTold = 4;
  if (ranks.size() == 1) return ": " + lastWords(view, ranks.front());
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < kMostTold; ++i)
    text += fmt::format("; rank {}: {}", ranks[i], lastWords(view, ranks[i]));
  return text;
}

Finding absentFinding(const View& view, const Frontier& frontier, const std::vector<int>& absent) {
  const std::string text = fmt::format("{} {} not come to {}{}", namesOf(absent), agree(absent, "has", "have"),
                                       waitersOf(frontier), detailsOf(view, absent));
  if (!view.isYoung(frontier.longestNs)) return {FindingKind::kNotCome, absent, text};
  return {FindingKind::kRunning, absent,
          fmt::format("{}; the others have waited for {}, which may be nothing unusual", text,
                      timeText(frontier.longestNs))};
}

Finding oldFinding(const View& view, const std::vector<int>& ranks, const std::string& what, int64_t afterNs) {
  const int64_t gap = afterNs - view.record(ranks.front())->writtenNs;
  return {
      FindingKind::kOldRecord, ranks,
      fmt::format("the {} of {} {} written {} before {}: write all records at the same time",
                  agree(ranks, "record", "records"), namesOf(ranks), agree(ranks, "was", "were"), timeText(gap), what)};
}

const Call* find(const Record& record, Line line, int peer, uint64_t number) {
  for (const Call& call : record.calls)
    if (call.line == line && call.peer == peer && call.number == number) return &call;
  return nullptr;
}

// How many the rank has made; what is recorded is the end of the list.
uint64_t madeOf(const Record& record, Line line, int peer) {
  uint64_t made = 0;
  for (const Call& call : record.calls)
    if (call.line == line && call.peer == peer) made = call.number + 1;
  return made;
}

void lookForPeer(const View& view, int rank, const Call& call, Findings& findings) {
  const int peer = *call.peer;
  const Record* other = view.record(peer);
  if (!other || peer == rank) return;
  const Line line = call.line == Line::kSend ? Line::kReceive : Line::kSend;
  const uint64_t made = madeOf(*other, line, rank);
  if (find(*other, line, rank, call.number) || made > call.number) return;
  // Who waits itself is a link of a chain, not its end.
  const Call* current = view.current(peer);
  if (current && current->waitingFor) return;
  if (other->writtenNs < call.queuedNs)
    return findings.push_back(
        oldFinding(view, {peer}, fmt::format("rank {} made {}", rank, title(call)), call.queuedNs));
  const std::string text =
      fmt::format("rank {} waits in {}, but rank {} has made {} such {}: {}", rank, describe(call), peer,
                  made == 0 ? "no" : fmt::format("only {}", made), nameOf(line), lastWords(view, peer));
  findings.push_back(
      {view.isYoung(timeIn(*view.record(rank), call)) ? FindingKind::kRunning : FindingKind::kNoSuchMessage,
       {peer},
       text});
}

}  // namespace

void findAbsent(const View& view, Findings& findings) {
  const Frontier frontier = frontierOf(view);
  if (!frontier.call) return;
  std::vector<int> absent, old;
  for (const Record& record : view.job().records) {
    const Call* last = view.lastCollective(record.rank);
    if (last && last->number >= frontier.call->number) continue;
    (record.writtenNs < frontier.firstNs ? old : absent).push_back(record.rank);
  }
  if (!absent.empty()) findings.push_back(absentFinding(view, frontier, absent));
  if (!old.empty())
    findings.push_back(oldFinding(view, old, "the others made " + title(*frontier.call), frontier.firstNs));
}

void findLonelyMessages(const View& view, Findings& findings) {
  constexpr size_t kMostTold = 4;
  for (const Record& record : view.job().records)
    for (const Call& call : record.calls)
      if (call.line != Line::kCollective && !call.done() && findings.size() < kMostTold)
        lookForPeer(view, record.rank, call, findings);
}

}  // namespace tutti::doctor
