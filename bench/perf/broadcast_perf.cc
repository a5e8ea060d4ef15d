#include "perf/collective.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int) { return {total, total, total}; }

tuttiResult_t run(const Call& c) {
  return tuttiBroadcastConfig(c.send, c.receive, c.count, c.type, c.place.root, c.comm, c.stream, c.config);
}

std::vector<Piece> results(size_t count, const Place& place) { return {{0, count, place.root, 0}}; }

constexpr Collective kCollective = {"broadcast_perf", "tuttiBroadcast", false, true, true, layout, run,
                                    results,          wholeFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
