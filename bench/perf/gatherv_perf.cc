#include "perf/collective.h"
#include "perf/parts.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int ranks) {
  const size_t count = total / static_cast<size_t>(ranks);
  return {count, count, count * static_cast<size_t>(ranks), count, 0};
}

tuttiResult_t run(const Call& c) {
  const Parts& parts = Parts::of(c.count, c.place.ranks);
  return tuttiGatherVConfig(c.send, partOf(c.count, c.place.rank), c.receive, parts.counts.data(), parts.places.data(),
                            c.type, c.place.root, c.comm, c.stream, c.config);
}

std::vector<Piece> results(size_t count, const Place& place) {
  std::vector<Piece> pieces;
  if (place.rank != place.root) return pieces;
  for (int r = 0; r < place.ranks; ++r)
    if (const size_t part = partOf(count, r); part != 0) pieces.push_back({static_cast<size_t>(r) * count, part, r, 0});
  return pieces;
}

constexpr Collective kCollective = {"gatherv_perf", "tuttiGatherV", false, true, true, layout, run,
                                    results,        ringFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
