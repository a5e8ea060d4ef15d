// One rank's part in gathering everyone's blob up the tree: it waits for its own and for its children's shares.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace tutti::control {

class Gathering {
 public:
  // Whose share: one of the two children's, or the rank's own.
  enum class Source : uint8_t { kFirstChild, kSecondChild, kSelf };

  Gathering(int rank, int size) : rank_(rank), size_(size) {}

  void addOwn(uint64_t sequence, std::span<const std::byte> blob);
  // `entries` are those of the child's whole subtree. Throws Error(kRemote) when they are not, when the child has
  // already given its share, or gives it to more exchanges than can be under way.
  void addChild(uint64_t sequence, Source child, std::span<const std::byte> entries);
  // The entries of this rank's subtree, once all have come; gives them once.
  std::optional<Bytes> take(uint64_t sequence);
  // The children whose shares of `sequence` have not come, and this rank where it has given none itself. A child's is
  // that of all below it too, of whom nothing is known before it comes.
  std::vector<int> missing(uint64_t sequence) const;
  // Whether something that has begun waits for this share.
  std::optional<uint64_t> waitingFor(Source source) const;

  // At the top: everyone's entries in rank order. Throws Error(kRemote) unless each rank is there exactly once.
  static std::vector<Bytes> toTable(std::span<const std::byte> entries, int size);

 private:
  struct Round {
    Bytes entries;
    bool came[3] = {false, false, false};
  };
  bool expects(Source source) const noexcept;
  void requireSubtree(Source child, std::span<const std::byte> entries) const;
  void add(uint64_t sequence, Source source, std::span<const std::byte> entries);

  int rank_, size_;
  std::map<uint64_t, Round> rounds_;
};

}  // namespace tutti::control
