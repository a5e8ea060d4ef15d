// Each rank waits for one other at most, so the waits form chains that end at a rank that waits for nobody, or in a
// circle.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/finders.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

constexpr size_t kMostLinks = 8;

class Waits {
 public:
  explicit Waits(const View& view) : next_(static_cast<size_t>(view.job().size), -1), depth_(next_.size()) {
    for (const Record& record : view.job().records)
      if (const Call* call = view.current(record.rank); call && call->waitingFor)
        next_[static_cast<size_t>(record.rank)] = *call->waitingFor;
    walkAll();
  }

  const std::vector<std::vector<int>>& circles() const noexcept { return circles_; }
  int next(int rank) const noexcept { return next_[static_cast<size_t>(rank)]; }

  // The rank at which the longest chain ends, and that chain with it; empty where nobody waits.
  std::vector<int> longest() const {
    const auto deepest = std::max_element(depth_.begin(), depth_.end());
    if (deepest == depth_.end() || *deepest == 0) return {};
    std::vector<int> chain;
    for (int rank = static_cast<int>(deepest - depth_.begin()); rank >= 0; rank = next(rank)) chain.push_back(rank);
    return chain;
  }

 private:
  enum : int { kUnknown = 0, kOnPath = -1, kCircles = -2 };

  // depth_: how many waits it is to the end, for those that have one.
  void walkAll() {
    std::vector<int> mark(next_.size(), kUnknown);  // 1: done
    for (size_t start = 0; start < next_.size(); ++start) walk(static_cast<int>(start), mark);
  }

  void walk(int start, std::vector<int>& mark) {
    std::vector<int> path;
    int rank = start;
    while (rank >= 0 && mark[static_cast<size_t>(rank)] == kUnknown) {
      mark[static_cast<size_t>(rank)] = kOnPath;
      path.push_back(rank);
      rank = next(rank);
    }
    bool circles = rank >= 0 && mark[static_cast<size_t>(rank)] != 1;
    if (rank >= 0 && mark[static_cast<size_t>(rank)] == kOnPath)
      circles_.emplace_back(std::find(path.begin(), path.end(), rank), path.end());
    int depth = rank >= 0 ? depth_[static_cast<size_t>(rank)] + 1 : 0;
    for (size_t i = path.size(); i-- > 0; ++depth) {
      mark[static_cast<size_t>(path[i])] = circles ? kCircles : 1;
      if (!circles) depth_[static_cast<size_t>(path[i])] = depth;
    }
  }

  std::vector<int> next_, depth_;
  std::vector<std::vector<int>> circles_;
};

std::string linksOf(const View& view, const std::vector<int>& ranks, const Waits& waits) {
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < kMostLinks; ++i) {
    if (waits.next(ranks[i]) < 0) break;
    if (i > 0) text += ", ";
    text += fmt::format("rank {} waits for rank {} in {}", ranks[i], waits.next(ranks[i]),
                        describe(*view.current(ranks[i])));
  }
  if (ranks.size() > kMostLinks + 1) text += fmt::format(", and so on over {} ranks", ranks.size());
  return text;
}

bool sameCall(const View& view, const std::vector<int>& ranks) {
  const Call& first = *view.current(ranks.front());
  return first.line == Line::kCollective && std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
           const Call& call = *view.current(rank);
           return call.line == Line::kCollective && call.number == first.number && call.matches(first);
         });
}

bool isYoung(const View& view, const std::vector<int>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const Call* call = view.record(rank) ? view.current(rank) : nullptr;
    return !call || view.isYoung(timeIn(*view.record(rank), *call));
  });
}

// Nobody is at fault when the last rank went on after the record of the one that waits for it was written.
bool overtaken(const View& view, int waiting, int last) {
  const Call& call = *view.current(waiting);
  for (const Call& theirs : view.record(last)->calls)
    if (theirs.line == call.line && theirs.number == call.number && theirs.done())
      return theirs.endedNs.value_or(0) >= view.record(waiting)->writtenNs;
  return false;
}

// Records of different moments show circles that never were.
bool mayGoOn(const View& view, const std::vector<int>& circle, const Waits& waits) {
  return isYoung(view, circle) ||
         std::ranges::any_of(circle, [&](int rank) { return overtaken(view, rank, waits.next(rank)); });
}

Finding tellCircle(const View& view, std::vector<int> ranks, const Waits& waits) {
  const std::string links = linksOf(view, ranks, waits);
  const bool same = sameCall(view, ranks), goesOn = mayGoOn(view, ranks, waits);
  const bool connecting = view.current(ranks.front())->state == State::kConnecting;
  std::sort(ranks.begin(), ranks.end());
  constexpr const char* kNow = " as their records were written, so it may well be going on";
  if (!same && goesOn) return {FindingKind::kRunning, ranks, links + kNow};
  if (!same)
    return {FindingKind::kCycle, ranks, fmt::format("{} wait for each other for ever: {}", namesOf(ranks), links)};
  const std::string text = fmt::format("{} wait for each other inside {}: they made the same call", namesOf(ranks),
                                       describe(*view.current(ranks.front())));
  if (goesOn)
    return {FindingKind::kRunning, ranks,
            text + " less than a second before their records were written, so it may well be going on"};
  return {FindingKind::kStuck, ranks,
          fmt::format("{}, but {}; look at the network between their hosts", text,
                      connecting ? "the links between them are not made" : "what they send does not arrive")};
}

// All who wait for the rank at the end of a chain of one link, if they do so in one call; else only those of the chain.
std::string waitersOf(const View& view, const std::vector<int>& chain, const Waits& waits) {
  std::vector<int> ranks;
  for (const Record& record : view.job().records)
    if (waits.next(record.rank) == chain.back()) ranks.push_back(record.rank);
  if (chain.size() > 2 || ranks.size() < 2 || !sameCall(view, ranks)) return linksOf(view, chain, waits);
  return fmt::format("{} wait for rank {} in {}", namesOf(ranks), chain.back(), describe(*view.current(ranks.front())));
}

Finding tellChain(const View& view, const std::vector<int>& chain, const Waits& waits) {
  const int last = chain.back(), before = chain[chain.size() - 2];
  const std::string links = waitersOf(view, chain, waits);
  if (!view.record(last))
    return {FindingKind::kNoRecord, {last}, fmt::format("{}; {} left no record", links, nameOf(view.job(), last))};
  const std::string text = fmt::format("{}; rank {} waits for nobody: {}", links, last, lastWords(view, last));
  if (isYoung(view, chain) || overtaken(view, before, last)) return {FindingKind::kRunning, {last}, text};
  return {FindingKind::kChain, {last}, text};
}

}  // namespace

void findChains(const View& view, Findings& findings) {
  const Waits waits(view);
  for (const auto& circle : waits.circles()) findings.push_back(tellCircle(view, circle, waits));
  const auto chain = waits.longest();
  if (chain.size() < 2) return;
  const bool told = std::any_of(findings.begin(), findings.end(), [&](const Finding& one) {
    return std::binary_search(one.blamed.begin(), one.blamed.end(), chain.back());
  });
  if (chain.size() > 2 || !told) findings.push_back(tellChain(view, chain, waits));
}

}  // namespace tutti::doctor
