#include "perf/collective.h"
#include "perf/parts.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int ranks) {
  const size_t count = total / static_cast<size_t>(ranks);
  return {count, count * static_cast<size_t>(ranks), count, 0, count};
}

tuttiResult_t run(const Call& c) {
  const Parts& parts = Parts::of(c.count, c.place.ranks);
  return tuttiScatterVConfig(c.send, parts.counts.data(), parts.places.data(), c.receive, partOf(c.count, c.place.rank),
                             c.type, c.place.root, c.comm, c.stream, c.config);
}

std::vector<Piece> results(size_t count, const Place& place) {
  const size_t part = partOf(count, place.rank);
  if (part == 0) return {};
  return {{0, part, place.root, static_cast<size_t>(place.rank) * count}};
}

constexpr Collective kCollective = {"scatterv_perf", "tuttiScatterV", false, true, true, layout, run,
                                    results,         ringFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
