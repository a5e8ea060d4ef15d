#include "perf/collective.h"

namespace {

using namespace tutti::perf;

Layout layout(size_t total, int) { return {total, total, total}; }

tuttiResult_t run(const Call& c) {
  const int next = (c.place.rank + 1) % c.place.ranks;
  const int previous = (c.place.rank + c.place.ranks - 1) % c.place.ranks;
  tuttiResult_t result = tuttiGroupStart();
  if (result != tuttiSuccess) return result;
  result = tuttiSendConfig(c.send, c.count, c.type, next, c.comm, c.stream, c.config);
  if (result == tuttiSuccess)
    result = tuttiRecvConfig(c.receive, c.count, c.type, previous, c.comm, c.stream, c.second);
  const tuttiResult_t end = tuttiGroupEnd();
  return result == tuttiSuccess ? end : result;
}

std::vector<Piece> results(size_t count, const Place& place) {
  return {{0, count, (place.rank + place.ranks - 1) % place.ranks, 0}};
}

constexpr Collective kCollective = {
    "sendrecv_perf", "tuttiSend and tuttiRecv", false, false, false, layout, run, results, wholeFactor};

}  // namespace

int main(int argc, char** argv) { return runProgram(kCollective, argc, argv); }
