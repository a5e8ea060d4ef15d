#include "perf/collective.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int) { return {total, total, total}; }

tuttiResult_t run(const Call& c) {
  return tuttiReduceConfig(c.send, c.receive, c.count, c.type, c.op, c.place.root, c.comm, c.stream, c.config);
}

std::vector<Piece> results(size_t count, const Place& place) {
  if (place.rank != place.root) return {};
  return {{0, count, Piece::kReduced, 0}};
}

constexpr Collective kCollective = {"reduce_perf", "tuttiReduce", true, true, true, layout, run, results, wholeFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
