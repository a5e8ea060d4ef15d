// Which ranks are measured together when: a tournament, so that no rank, and between hosts no host, has two opponents
// at a time.
#pragma once
#include <string>
#include <vector>

namespace tutti::doctor::net {

struct Meeting {
  int low = 0, high = 0;  // ranks
  std::string transport;
  friend bool operator==(const Meeting&, const Meeting&) = default;
};
using Round = std::vector<Meeting>;  // side by side

struct Tournament {
  std::vector<Round> rounds;
  size_t left = 0;  // pairs of hosts that are left out, so that it ends
};

// `hosts`: the ranks of each. `inside`, `between`: transports for pairs in a host and of two hosts. Of hosts the first
// ranks meet, in `mostRounds` rounds a transport at most, in which every host still gets as many opponents; inside of
// hosts their first eight ranks.
Tournament tournament(const std::vector<std::vector<int>>& hosts, const std::vector<std::string>& inside,
                      const std::vector<std::string>& between, size_t mostRounds);

}  // namespace tutti::doctor::net
