// Small calls of rank 0 of two whose peer has done its part already, for a tool that counts instructions: those in
// countedCall(). `tutti_short_call OPERATION BYTES CALLS`.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/tutti.h"

namespace {

using Call = std::function<tuttiResult_t(tuttiComm_t)>;

// Before them the plan is made, and the links.
constexpr int kWarmUp = 20;

std::atomic<int> peerIsAt{-1};

void require(tuttiResult_t result) {
  if (result == tuttiSuccess) return;
  std::fprintf(stderr, "%s\n", tuttiGetLastError(nullptr));
  std::exit(1);
}

Call callOf(const std::string& operation, std::vector<float>& in, std::vector<float>& out) {
  const size_t count = in.size();
  const float* const from = in.data();
  float* const to = out.data();
  if (operation == "all_reduce")
    return [=](tuttiComm_t comm) { return tuttiAllReduce(from, to, count, tuttiFloat32, tuttiSum, comm, nullptr); };
  if (operation == "all_gather")
    return [=](tuttiComm_t comm) { return tuttiAllGather(from, to, count, tuttiFloat32, comm, nullptr); };
  if (operation == "broadcast")
    return [=](tuttiComm_t comm) { return tuttiBroadcast(from, to, count, tuttiFloat32, 1, comm, nullptr); };
  std::fprintf(stderr, "no such operation\n");
  std::exit(2);
}

}  // namespace

extern "C" __attribute__((noinline)) tuttiResult_t countedCall(const Call& call, tuttiComm_t comm) {
  const tuttiResult_t result = call(comm);
  asm volatile("" ::: "memory");  // not the last thing that it does: its frame stays
  return result;
}

// Rank 1 says that it is about to call; a little later it has done so, and sleeps. Rank 0 then need not wait, and wakes
// it.
static void run(int rank, tuttiUniqueId id, const std::string& operation, size_t bytes, int calls) {
  std::vector<float> in(bytes / sizeof(float)), out(2 * in.size());
  const Call call = callOf(operation, in, out);
  tuttiComm_t comm = nullptr;
  require(tuttiCommInitRank(&comm, 2, id, rank));
  for (int i = 0; i < kWarmUp + calls; ++i) {
    if (rank == 1) {
      peerIsAt = i;
      require(call(comm));
      continue;
    }
    do std::this_thread::sleep_for(std::chrono::milliseconds(50));
    while (peerIsAt < i);
    require(i < kWarmUp ? call(comm) : countedCall(call, comm));
  }
  require(tuttiCommDestroy(comm));
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string operation = argv[1];
  const auto bytes = static_cast<size_t>(std::atol(argv[2]));
  const int calls = std::atoi(argv[3]);
  tuttiUniqueId id;
  require(tuttiGetUniqueId(&id));
  std::thread other([&] { run(1, id, operation, bytes, calls); });
  run(0, id, operation, bytes, calls);
  other.join();
  return 0;
}
