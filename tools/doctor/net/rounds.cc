#include "doctor/net/rounds.h"

#include <algorithm>
#include <utility>

namespace tutti::doctor::net {
namespace {

constexpr size_t kMostInside = 8;

using Pairs = std::vector<std::pair<size_t, size_t>>;

// The circle method: one player stays, the others move on by a place each round. With an odd number one rests.
Pairs roundOf(size_t players, size_t round) {
  const size_t seats = players + players % 2, moving = seats - 1;
  const auto playerAt = [&](size_t seat) { return seat == 0 ? 0 : 1 + (seat - 1 + round) % moving; };
  Pairs pairs;
  for (size_t seat = 0; seat < seats / 2; ++seat) {
    const size_t a = playerAt(seat), b = playerAt(seats - 1 - seat);
    if (a < players && b < players) pairs.emplace_back(std::min(a, b), std::max(a, b));
  }
  return pairs;
}

size_t roundsOf(size_t players) { return players < 2 ? 0 : players + players % 2 - 1; }

void add(Round& round, int a, int b, const std::string& transport) {
  round.push_back({std::min(a, b), std::max(a, b), transport});
}

}  // namespace

Tournament tournament(const std::vector<std::vector<int>>& hosts, const std::vector<std::string>& inside,
                      const std::vector<std::string>& between, size_t mostRounds) {
  Tournament all;
  const size_t wanted = roundsOf(hosts.size()), rounds = std::min(wanted, mostRounds);
  for (const std::string& transport : between)
    for (size_t round = 0; round < rounds; ++round) {
      Round& now = all.rounds.emplace_back();
      for (const auto& [a, b] : roundOf(hosts.size(), round)) add(now, hosts[a].front(), hosts[b].front(), transport);
    }
  for (size_t round = rounds; !between.empty() && round < wanted; ++round)
    all.left += roundOf(hosts.size(), round).size();
  for (const std::string& transport : inside)
    for (size_t round = 0; round < roundsOf(kMostInside); ++round) {
      Round now;
      for (const auto& ranks : hosts) {
        const size_t players = std::min(ranks.size(), kMostInside);
        if (round >= roundsOf(players)) continue;
        for (const auto& [a, b] : roundOf(players, round)) add(now, ranks[a], ranks[b], transport);
      }
      if (!now.empty()) all.rounds.push_back(std::move(now));
    }
  return all;
}

}  // namespace tutti::doctor::net
