// The buffers that the user has told a communicator about.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace tutti::comm {

struct Range {
  const std::byte* begin = nullptr;
  size_t bytes = 0;
  bool holds(const Range& other) const noexcept {
    return other.begin >= begin && other.begin + other.bytes <= begin + bytes;
  }
  bool overlaps(const Range& other) const noexcept {
    return begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

// One thread at a time.
class Registered {
 public:
  // What it returns stands for the buffer until remove(). Buffers may overlap, and be there several times.
  const void* add(const void* buffer, size_t bytes) {
    ranges_.push_back(std::make_unique<Range>(Range{static_cast<const std::byte*>(buffer), bytes}));
    return ranges_.back().get();
  }
  // False: add() never returned it, or it has been removed.
  bool remove(const void* handle) {
    return std::erase_if(ranges_, [handle](const auto& range) { return range.get() == handle; }) != 0;
  }

 private:
  std::vector<std::unique_ptr<Range>> ranges_;
};

}  // namespace tutti::comm
