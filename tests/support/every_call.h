// All operations, each with a configuration of its own call, on buffers whose results are known.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/api_ranks.h"

namespace tutti::test {

// Of one rank. `make` makes the call, with buffers that stay; `right` says whether the results are there, and takes
// them away again.
struct EveryCall {
  std::string name;
  std::function<tuttiResult_t(const tuttiCallConfig_t*)> make;
  std::function<bool()> right;
};

struct EveryCallBuffers {
  static constexpr size_t kCount = 700;
  EveryCallBuffers(int self, int size) : rank(self), ranks(size), in(all(), self + 1), out(all(), -1) {
    for (int r = 0; r < ranks; ++r) counts.push_back(kCount), places.push_back(kCount * static_cast<size_t>(r));
  }
  size_t all() const { return kCount * static_cast<size_t>(ranks); }
  bool take(const std::vector<int>& expected) {
    const bool same = std::equal(expected.begin(), expected.end(), out.begin());
    std::fill(out.begin(), out.end(), -1);
    return same;
  }
  std::vector<int> same(int value, size_t count = kCount) const { return std::vector<int>(count, value); }
  std::vector<int> ofEach() const {
    std::vector<int> values;
    for (int r = 0; r < ranks; ++r) values.insert(values.end(), kCount, r + 1);
    return values;
  }
  int sum() const { return ranks * (ranks + 1) / 2; }

  int rank, ranks;
  std::vector<int> in, out;
  std::vector<size_t> counts, places;
};

// The collectives; messages are made in pairs by those who want them.
inline std::vector<EveryCall> everyCollective(EveryCallBuffers& at, tuttiComm_t comm, tuttiStream_t stream) {
  using Config = const tuttiCallConfig_t*;
  constexpr size_t n = EveryCallBuffers::kCount;
  const auto type = tuttiInt32;
  int* const in = at.in.data();
  int* const out = at.out.data();
  const size_t *const counts = at.counts.data(), *const places = at.places.data();
  const int last = at.ranks - 1;
  const bool isRoot = at.rank == last;
  return {
      {"AllReduce", [=](Config c) { return tuttiAllReduceConfig(in, out, n, type, tuttiSum, comm, stream, c); },
       [&at] { return at.take(at.same(at.sum())); }},
      {"Broadcast", [=](Config c) { return tuttiBroadcastConfig(in, out, n, type, last, comm, stream, c); },
       [&at] { return at.take(at.same(at.ranks)); }},
      {"Reduce", [=](Config c) { return tuttiReduceConfig(in, out, n, type, tuttiSum, last, comm, stream, c); },
       [&at, isRoot] { return at.take(at.same(isRoot ? at.sum() : -1)); }},
      {"AllGather", [=](Config c) { return tuttiAllGatherConfig(in, out, n, type, comm, stream, c); },
       [&at] { return at.take(at.ofEach()); }},
      {"ReduceScatter", [=](Config c) { return tuttiReduceScatterConfig(in, out, n, type, tuttiSum, comm, stream, c); },
       [&at] { return at.take(at.same(at.sum())); }},
      {"Gather", [=](Config c) { return tuttiGatherConfig(in, out, n, type, last, comm, stream, c); },
       [&at, isRoot] { return at.take(isRoot ? at.ofEach() : at.same(-1)); }},
      {"Scatter", [=](Config c) { return tuttiScatterConfig(in, out, n, type, last, comm, stream, c); },
       [&at] { return at.take(at.same(at.ranks)); }},
      {"AllToAll", [=](Config c) { return tuttiAllToAllConfig(in, out, n, type, comm, stream, c); },
       [&at] { return at.take(at.ofEach()); }},
      {"AllGatherV", [=](Config c) { return tuttiAllGatherVConfig(in, out, counts, places, type, comm, stream, c); },
       [&at] { return at.take(at.ofEach()); }},
      {"ReduceScatterV",
       [=](Config c) { return tuttiReduceScatterVConfig(in, out, counts, type, tuttiSum, comm, stream, c); },
       [&at] { return at.take(at.same(at.sum())); }},
      {"AllToAllV",
       [=](Config c) { return tuttiAllToAllVConfig(in, counts, places, out, counts, places, type, comm, stream, c); },
       [&at] { return at.take(at.ofEach()); }},
      {"Barrier", [=](Config c) { return tuttiBarrierConfig(comm, stream, c); }, [] { return true; }},
  };
}

inline tuttiCallConfig_t callConfig(tuttiRequest_t* request = nullptr, unsigned int flags = 0) {
  tuttiCallConfig_t config = TUTTI_CALL_CONFIG_INITIALIZER;
  config.request = request;
  config.flags = flags;
  return config;
}

}  // namespace tutti::test
