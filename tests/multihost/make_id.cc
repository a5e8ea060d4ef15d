// Writes a new unique id, in hex, to standard output, and stays, as the root of the job, until standard input ends.
#include <cstdio>
#include <string>

#include "tutti/tutti.h"

int main() {
  tuttiUniqueId id;
  if (tuttiGetUniqueId(&id) != tuttiSuccess) {
    std::fprintf(stderr, "%s\n", tuttiGetLastError(nullptr));
    return 1;
  }
  for (const char byte : id.internal) std::printf("%02x", static_cast<unsigned char>(byte));
  std::printf("\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
