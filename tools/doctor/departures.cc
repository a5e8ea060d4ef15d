#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "doctor/finders.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

struct Accusation {
  std::vector<int> by;
  std::string text;  // what the rank did, such as "left: connection closed"
};

// The rank that a text begins with by its whole name, as errors that come from another rank do.
std::optional<int> subjectOf(const Job& job, const std::string& text) {
  constexpr std::string_view kRank = "rank ";
  if (!text.starts_with(kRank)) return std::nullopt;
  int rank = -1;
  const char* from = text.data() + kRank.size();
  std::from_chars(from, text.data() + text.size(), rank);
  if (rank < 0 || rank >= job.size || !text.starts_with(nameOf(job, rank) + " ")) return std::nullopt;
  return rank;
}

// Where the accuser itself was is told from its calls.
std::string withoutPlace(const std::string& text) { return text.substr(0, text.rfind(", during ")); }

std::map<int, Accusation> accusations(const View& view) {
  std::map<int, Accusation> found;
  for (const Record& record : view.job().records) {
    if (!record.failure) continue;
    const std::string& text = record.failure->text;
    const auto rank = subjectOf(view.job(), text);
    if (!rank || *rank == record.rank) continue;
    Accusation& accusation = found[*rank];
    accusation.by.push_back(record.rank);
    if (accusation.text.empty()) accusation.text = withoutPlace(text.substr(nameOf(view.job(), *rank).size() + 1));
  }
  return found;
}

// ", while ranks 0-2 were in all-reduce #3 (...)": the earliest collective that is not done.
std::string whileOthers(const View& view) {
  for (const auto& [number, entries] : view.collectives()) {
    std::vector<int> ranks;
    for (const auto& [rank, call] : entries)
      if (!call->done()) ranks.push_back(rank);
    if (!ranks.empty())
      return fmt::format(", while {} {} in {}", namesOf(ranks), agree(ranks, "was", "were"),
                         describe(*entries.front().call));
  }
  return "";
}

Finding tell(const View& view, int rank, const Accusation& accusation) {
  const std::string name = nameOf(view.job(), rank);
  const Record* record = view.record(rank);
  const std::string said =
      fmt::format("{} {} that it {}", namesOf(accusation.by), agree(accusation.by, "says", "say"), accusation.text);
  if (!record)
    return {FindingKind::kLeft, {rank}, fmt::format("{} left no record; {}{}", name, said, whileOthers(view))};
  if (record->failure && subjectOf(view.job(), record->failure->text) != rank)
    return {FindingKind::kFailed, {rank}, fmt::format("{} failed first: {}; {}", name, record->failure->text, said)};
  return {
      FindingKind::kFailed, {rank}, fmt::format("{} stopped the others: {}; {}", name, said, lastWords(view, rank))};
}

}  // namespace

void findDepartures(const View& view, Findings& findings) {
  constexpr size_t kMostTold = 8;
  const auto all = accusations(view);
  std::vector<int> rest;
  for (const auto& [rank, accusation] : all)
    if (findings.size() < kMostTold)
      findings.push_back(tell(view, rank, accusation));
    else
      rest.push_back(rank);
  if (!rest.empty()) findings.push_back({FindingKind::kFailed, rest, namesOf(rest) + " as well, say the others"});
}

std::string lastWords(const View& view, int rank) {
  const Call* call = view.current(rank);
  if (call) return "it is in " + describe(*call);
  call = view.lastCall(rank);
  if (!call) return "it has made no call";
  const Record& record = *view.record(rank);
  std::string text = "its last call was " + describe(*call);
  if (call->endedNs && record.writtenNs >= *call->endedNs)
    text += fmt::format(", done {} before its record was written", timeText(record.writtenNs - *call->endedNs));
  return text;
}

}  // namespace tutti::doctor
