// What a value is, symbolically: a rank's input, or a reduction of terms in a given order.
//
// Equal terms have equal numbers (hash-consing), so comparing two reduction orders is comparing two numbers. A term is
// what one step makes and stores, and storing rounds: a sum of three in one step is another term than the same sum in
// two steps, and a division within the step that sums another one than a division later. A copy rounds nothing, and an
// input is a value of its type also where it is multiplied first (kernels::scaled). So ranks that hold equal terms have
// applied the same roundings in the same order, and have the same bits. Beside its
// structure every term has a weight: the sum of the weights of the contributions in it. Up to 64 ranks a weight is a
// vector of two-bit counters, one per rank, and a term that holds a rank twice is seen where it is made: the multiset
// is exact. Beyond, the ranks' weights are random 128-bit numbers and sums are taken modulo 2^128: a wrong multiset
// passes for a right one with a probability of less than 2^-100.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::proof {

class SymbolicValues {
 public:
  using Id = uint32_t;
  using Weight = unsigned __int128;
  static constexpr Id kNothing = 0;  // of memory that has not been written

  explicit SymbolicValues(int ranks);

  Id leaf(int rank) const noexcept { return static_cast<Id>(rank) + 1; }
  // One source is a copy; several are a reduction in that order.
  Id reduce(std::span<const Id> sources);
  // The same with the division, if there is one, in the step that reduces.
  Id finalise(std::span<const Id> sources);

  bool finalised(Id id) const noexcept { return nodes_[id].finalised; }
  // Whether every rank is in it, exactly once.
  bool complete(Id id) const noexcept { return nodes_[id].weight == all_; }
  // Whether a rank is in it twice; beyond 64 ranks this is not known before the end.
  bool doubled(Id id) const noexcept { return exact_ && (nodes_[id].weight & kOddBits) != 0; }
  std::string describe(Id id) const;

 private:
  struct Node {
    Weight weight = 0;
    uint32_t begin = 0, count = 0;  // children
    bool finalised = false;
  };
  static constexpr Weight kOddBits = Weight{0xaaaaaaaaaaaaaaaau} << 64 | 0xaaaaaaaaaaaaaaaau;
  static constexpr int kExactRanks = 64;

  Id intern(std::span<const Id> children, bool finalised);
  Id make(std::span<const Id> children, bool finalised);
  bool same(Id id, std::span<const Id> children, bool finalised) const noexcept;
  void grow();
  uint64_t hashOf(std::span<const Id> children, bool finalised) const noexcept;

  int ranks_;
  bool exact_;
  Weight all_ = 0;
  std::vector<Node> nodes_;
  std::vector<Id> children_;
  std::vector<Id> table_;  // open addressing; a power of two, at most half full
};

}  // namespace tutti::proof
