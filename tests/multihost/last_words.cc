// The first rank sends one message to the last and leaves, however long the message will be on its way. The message
// must arrive, and nobody may take the sender for missing.
#include <cstddef>
#include <cstdio>
#include <vector>

#include "tutti/tutti.h"

namespace {

constexpr size_t kElements = 60'000;

int fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, tuttiGetLastError(nullptr));
  return 1;
}

}  // namespace

int main() {
  tuttiComm_t comm = nullptr;
  if (tuttiCommInitEnv(&comm, nullptr) != tuttiSuccess) return fail("joining");
  int rank = 0, size = 0;
  tuttiCommUserRank(comm, &rank);
  tuttiCommCount(comm, &size);
  std::vector<int> words(kElements, rank == 0 ? 7 : 0);
  if (rank == 0 && tuttiSend(words.data(), kElements, tuttiInt32, size - 1, comm, nullptr) != tuttiSuccess)
    return fail("sending");
  if (rank == size - 1 && tuttiRecv(words.data(), kElements, tuttiInt32, 0, comm, nullptr) != tuttiSuccess)
    return fail("receiving");
  tuttiCommDestroy(comm);
  const bool right = (rank != 0 && rank != size - 1) || words == std::vector<int>(kElements, 7);
  std::printf("rank %d: %s\n", rank, right ? "right" : "WRONG");
  return right ? 0 : 1;
}
