#include "perf/collective.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int ranks) {
  const size_t count = total / static_cast<size_t>(ranks);
  return {count, count, count * static_cast<size_t>(ranks), count, 0};
}

tuttiResult_t run(const Call& c) {
  return tuttiAllGatherConfig(c.send, c.receive, c.count, c.type, c.comm, c.stream, c.config);
}

std::vector<Piece> results(size_t count, const Place& place) {
  std::vector<Piece> pieces;
  for (int r = 0; r < place.ranks; ++r) pieces.push_back({static_cast<size_t>(r) * count, count, r, 0});
  return pieces;
}

constexpr Collective kCollective = {"all_gather_perf", "tuttiAllGather", false, false, true, layout, run,
                                    results,           ringFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
