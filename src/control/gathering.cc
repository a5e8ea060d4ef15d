#include "control/gathering.h"

#include <algorithm>

#include "join/tree.h"

namespace tutti::control {

bool Gathering::expects(Source source) const noexcept {
  return source == Source::kSelf || tree::childOf(rank_, static_cast<int>(source)) < size_;
}

void Gathering::add(uint64_t sequence, Source source, std::span<const std::byte> entries) {
  Round& round = rounds_[sequence];
  bool& came = round.came[static_cast<int>(source)];
  if (came || !expects(source))
    throw Error(ErrorCode::kRemote, fmt::format("a share of set-up exchange #{} came twice", sequence));
  came = true;
  round.entries.insert(round.entries.end(), entries.begin(), entries.end());
}

void Gathering::addOwn(uint64_t sequence, std::span<const std::byte> blob) {
  add(sequence, Source::kSelf, Writer().value<int32_t>(rank_).block(blob).take());
}

// Every rank of a child's subtree once, and nobody else: what a child hands in of another would be kept until the top
// refuses it.
void Gathering::requireSubtree(Source child, std::span<const std::byte> entries) const {
  std::vector<bool> due(static_cast<size_t>(size_), false);
  const auto below = tree::subtree(tree::childOf(rank_, static_cast<int>(child)), size_);
  for (const int rank : below) due[static_cast<size_t>(rank)] = true;
  size_t count = 0;
  for (Reader in(entries); !in.empty(); ++count) {
    const auto rank = in.value<int32_t>();
    in.block();
    if (rank < 0 || rank >= size_ || !due[static_cast<size_t>(rank)])
      throw Error(ErrorCode::kRemote, fmt::format("a share with rank {}, which comes twice or is not below", rank));
    due[static_cast<size_t>(rank)] = false;
  }
  if (count != below.size())
    throw Error(ErrorCode::kRemote, fmt::format("a share of {} ranks, and not of {}", count, below.size()));
}

void Gathering::addChild(uint64_t sequence, Source child, std::span<const std::byte> entries) {
  // A rank begins one when it has the last one's table, so that one is under way; more are when it gives them up, and
  // then the ranks no longer agree on which is which.
  constexpr ptrdiff_t kMostRounds = 4;
  const auto ofThisChild = [&](const auto& one) { return one.second.came[static_cast<int>(child)]; };
  if (std::ranges::count_if(rounds_, ofThisChild) >= kMostRounds)
    throw Error(ErrorCode::kRemote, fmt::format("shares of {} set-up exchanges at once", kMostRounds + 1));
  requireSubtree(child, entries);
  add(sequence, child, entries);
}

std::optional<Bytes> Gathering::take(uint64_t sequence) {
  const auto at = rounds_.find(sequence);
  if (at == rounds_.end()) return std::nullopt;
  for (const Source source : {Source::kFirstChild, Source::kSecondChild, Source::kSelf})
    if (expects(source) && !at->second.came[static_cast<int>(source)]) return std::nullopt;
  Bytes entries = std::move(at->second.entries);
  rounds_.erase(at);
  return entries;
}

std::vector<int> Gathering::missing(uint64_t sequence) const {
  const auto at = rounds_.find(sequence);
  const Round none;
  const Round& round = at == rounds_.end() ? none : at->second;
  std::vector<int> ranks;
  if (!round.came[static_cast<int>(Source::kSelf)]) ranks.push_back(rank_);
  for (const Source child : {Source::kFirstChild, Source::kSecondChild})
    if (expects(child) && !round.came[static_cast<int>(child)])
      ranks.push_back(tree::childOf(rank_, static_cast<int>(child)));
  return ranks;
}

std::optional<uint64_t> Gathering::waitingFor(Source source) const {
  if (!expects(source)) return std::nullopt;
  for (const auto& [sequence, round] : rounds_)
    if (!round.came[static_cast<int>(source)]) return sequence;
  return std::nullopt;
}

std::vector<Bytes> Gathering::toTable(std::span<const std::byte> entries, int size) {
  std::vector<Bytes> table(static_cast<size_t>(size));
  std::vector<bool> seen(static_cast<size_t>(size), false);
  int count = 0;
  for (Reader in(entries); !in.empty(); ++count) {
    const auto rank = static_cast<size_t>(in.value<int32_t>());
    const auto blob = in.block();
    if (rank >= seen.size() || seen[rank])
      throw Error(ErrorCode::kRemote, "a gathered table names a rank twice, or one that is none");
    seen[rank] = true;
    table[rank].assign(blob.begin(), blob.end());
  }
  if (count != size) throw Error(ErrorCode::kRemote, fmt::format("a gathered table has {} of {} ranks", count, size));
  return table;
}

}  // namespace tutti::control
