// Events in the order of their times; those of one time in the order in which they came. None comes before the last one
// that was taken, so a radix heap does (R. Ahuja, K. Mehlhorn, J. Orlin, R. Tarjan, "Faster algorithms for the shortest
// path problem", 1990): an event lies in the bucket of the highest bit in which its time differs from that last one.
// Its buckets are read from end to end, where a binary heap of a million events would miss the cache at each level.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::sim {

// `Event` has a member `time`, a uint64_t.
template <class Event>
class EventQueue {
 public:
  bool empty() const noexcept { return size_ == 0; }

  void push(const Event& event) {
    buckets_[bucketOf(event.time)].push_back(event);
    ++size_;
  }

  Event pop() {
    if (next_ == buckets_[0].size()) refill();
    --size_;
    return buckets_[0][next_++];
  }

 private:
  size_t bucketOf(uint64_t time) const noexcept { return static_cast<size_t>(std::bit_width(time ^ last_)); }

  // The first bucket that holds something is spread over those before it; the earliest of it lie in bucket 0 then.
  // Events of one time are in one bucket always, and keep their order.
  void refill() {
    buckets_[0].clear();
    next_ = 0;
    size_t first = 1;
    while (buckets_[first].empty()) ++first;
    std::vector<Event>& from = buckets_[first];
    last_ = from.front().time;
    for (const Event& event : from) last_ = event.time < last_ ? event.time : last_;
    for (const Event& event : from) buckets_[bucketOf(event.time)].push_back(event);
    from.clear();
  }

  std::array<std::vector<Event>, 65> buckets_;
  uint64_t last_ = 0;
  size_t next_ = 0, size_ = 0;
};

}  // namespace tutti::sim
