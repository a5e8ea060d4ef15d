#include "perf/collective.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int ranks) {
  const size_t count = total / static_cast<size_t>(ranks);
  return {count, count * static_cast<size_t>(ranks), count * static_cast<size_t>(ranks)};
}

tuttiResult_t run(const Call& c) { return tuttiAllToAll(c.send, c.receive, c.count, c.type, c.comm, c.stream); }

std::vector<Piece> results(size_t count, const Place& place) {
  const size_t mine = static_cast<size_t>(place.rank) * count;
  std::vector<Piece> pieces;
  for (int r = 0; r < place.ranks; ++r) pieces.push_back({static_cast<size_t>(r) * count, count, r, mine});
  return pieces;
}

constexpr Collective kCollective = {"alltoall_perf", "tuttiAllToAll", false, false, true, layout, run,
                                    results,         ringFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
