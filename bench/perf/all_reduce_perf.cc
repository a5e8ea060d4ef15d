#include "perf/collective.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int) { return {total, total, total}; }

tuttiResult_t run(const Call& c) {
  return tuttiAllReduceConfig(c.send, c.receive, c.count, c.type, c.op, c.comm, c.stream, c.config);
}

std::vector<Piece> results(size_t count, const Place&) { return {{0, count, Piece::kReduced, 0}}; }

// Every element goes out and comes in once while it is reduced, and again while the result is spread.
double busFactor(int ranks) { return 2 * ringFactor(ranks); }

constexpr Collective kCollective = {"all_reduce_perf", "tuttiAllReduce", true, false, true, layout, run,
                                    results,           busFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
