// The order of the ranks in rings and trees: those of one host next to each other, so that links cross between hosts as
// rarely as can be, however a launcher has placed the ranks. Hosts are in the order of Hosts (grid.h); their ranks too,
// unless an order is given, such as the one in which the links between their GPUs carry the most.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::schedule {

// Numbers of hosts, or places, one for each rank, in few bits: ranks that see them differently find out by their slots.
// That is the second look: what they are made of, what ranks tell of themselves and TUTTI_GROUP_SIZE, was handed to all
// alike or compared in full when they joined (team/agreement.cc), so that two that have one digest by chance are
// refused there.
uint16_t digestOf(std::span<const int> numbers) noexcept;

class Row {
 public:
  // As in Shape. Any numbers are an order: of equal ones the rank with the lesser number comes first.
  explicit Row(std::span<const int> groupOf, std::span<const int> within = {});

  int rankAt(int place) const noexcept { return ranks_.empty() ? place : ranks_[place]; }
  int placeOf(int rank) const noexcept { return places_.empty() ? rank : places_[rank]; }
  bool byNumbers() const noexcept { return places_.empty(); }
  // 0 where the ranks follow one another by their numbers.
  uint16_t digest() const noexcept { return places_.empty() ? 0 : digestOf(places_); }

 private:
  std::vector<int> ranks_, places_;  // empty: each rank at the place of its number
};

// "0 2 1 3": the first of so many ranks, in this order.
std::string textOf(const Row& row, int size);

}  // namespace tutti::schedule
