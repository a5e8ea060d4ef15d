/* Every rank brings an array, every rank gets the sum of all of them.
 *
 *   01_all_reduce --ranks 4      starts four processes on this machine
 *   mpirun -n 4 01_all_reduce    or let a launcher start them
 */
#include "launch.h" /* --ranks: not part of the library */

#include <stdio.h>

#include "tutti/tutti.h"

#define CHECK(call)                                                                \
  do {                                                                             \
    if ((call) != tuttiSuccess) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tuttiGetLastError(NULL)); \
      return 1;                                                                    \
    }                                                                              \
  } while (0)

enum { kCount = 4 };

int main(int argc, char** argv) {
  int status = 0;
  if (launchAnswers(argc, argv, "", &status) || launchRanks(argc, argv, &status)) return status;

  /* Find the other processes: the environment says who we are and where to meet. */
  tuttiComm_t comm;
  int rank, size;
  CHECK(tuttiCommInitEnv(&comm, NULL));
  CHECK(tuttiCommUserRank(comm, &rank));
  CHECK(tuttiCommCount(comm, &size));

  float mine[kCount], sum[kCount];
  for (int i = 0; i < kCount; ++i) mine[i] = (float)(rank + 10 * i);

  /* The last argument is a stream: NULL runs the operation in this thread, and it is done when the call returns. */
  CHECK(tuttiAllReduce(mine, sum, kCount, tuttiFloat32, tuttiSum, comm, NULL));
  printf("rank %d of %d: %g %g %g %g\n", rank, size, sum[0], sum[1], sum[2], sum[3]);

  CHECK(tuttiCommDestroy(comm));
  return launchFinish(argv[0]);
}
