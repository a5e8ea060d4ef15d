#include "perf/collective.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int ranks) {
  const size_t count = total / static_cast<size_t>(ranks);
  return {count, count * static_cast<size_t>(ranks), count, 0, count};
}

tuttiResult_t run(const Call& c) {
  return tuttiReduceScatterConfig(c.send, c.receive, c.count, c.type, c.op, c.comm, c.stream, c.config);
}

std::vector<Piece> results(size_t count, const Place& place) {
  return {{0, count, Piece::kReduced, static_cast<size_t>(place.rank) * count}};
}

constexpr Collective kCollective = {
    "reduce_scatter_perf", "tuttiReduceScatter", true, false, true, layout, run, results, ringFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
