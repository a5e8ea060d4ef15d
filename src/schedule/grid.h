// Ranks as a grid of hosts × members, and the two phases that all bandwidth-optimal builders are made of.
//
// Every host has `lanes` lanes; lane c of a host is run by its member c. Within a host a lane exchanges with all
// members directly; between hosts each lane is a ring of its own. A flat ring is the grid of one member per host, the
// direct (two-shot) exchange is the grid of one host, and the hierarchical builder takes everything between:
//
//   four ranks      ring              two-shot             two hosts of two
//                   0 → 1 → 2 → 3     0 1 2 3: all four    0 1     lane 0: 0 → 2 → 0
//                   ↑-----------|     with each other      2 3     lane 1: 1 → 3 → 1
//
// Of h hosts with m ranks each, an all-reduce takes 2 (h - 1) steps between hosts and two within, and each rank sends
// 2 (m - 1)/m of the message within its host and 2 (h - 1)/(h m) to another; a single phase takes half of both. The
// hosts may be of different sizes: lanes are as many as the smallest host has members, and the members beyond that
// only feed the lanes and are fed by them.
#pragma once
#include <bit>
#include <span>
#include <vector>

#include "schedule/builder.h"
#include "schedule/row.h"

namespace tutti::schedule {

// Which ranks share a host. Hosts are numbered in the order of their first rank, members in the order of rank.
class Hosts {
 public:
  static Hosts together(int size);
  static Hosts of(std::span<const int> groupOf, int size);
  static Hosts eachAlone(const Row& row, int size);

  int count() const noexcept { return static_cast<int>(begin_.size()) - 1; }
  int membersOf(int host) const noexcept { return begin_[host + 1] - begin_[host]; }
  int rankOf(int host, int member) const noexcept { return ranks_[begin_[host] + member]; }
  int hostOf(int rank) const noexcept;
  int memberOf(int rank) const noexcept;
  int smallest() const noexcept;
  // Of which ranks are together.
  uint16_t digest() const noexcept;

 private:
  std::vector<int> ranks_;  // host after host
  std::vector<int> begin_;  // where each host starts in ranks_, and the end
  std::vector<int> place_;  // rank → position in ranks_
};

// The largest hypercube among the ranks. Of n > 2^k ranks the first 2 (n - 2^k) stand in pairs: the even one is a
// corner, for both, and the odd one stands aside.
class Cube {
 public:
  explicit Cube(int size)
      : corners_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), pairs_(size - corners_) {}

  int corners() const { return corners_; }
  int cornerOf(int rank) const { return rank < 2 * pairs_ ? rank / 2 : rank - pairs_; }
  int rankAt(int corner) const { return corner < pairs_ ? 2 * corner : corner + pairs_; }
  bool standsAside(int rank) const { return rank < 2 * pairs_ && rank % 2 == 1; }
  bool standsForTwo(int rank) const { return rank < 2 * pairs_ && rank % 2 == 0; }

 private:
  int corners_, pairs_;
};

// What those who stand aside add to an all-reduce: they hand their whole input to their partners first, and get the
// result at last.
void addPartners(Workload& work, double bytes, const Scale& scale);

// All-reduce, all-gather(-v) or reduce-scatter(-v) on the grid.
Schedule buildOnGrid(const Shape& shape, int rank, const Hosts& hosts);

}  // namespace tutti::schedule
