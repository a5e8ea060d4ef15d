/* Works on when ranks die: whoever is left makes a smaller communicator and takes the step again.
 *
 *   03_survivors --ranks 4 &
 *   kill -9 <one of the process numbers that it prints>
 *
 * It ends after 60 steps of a quarter of a second, or when it is alone.
 */
#include "launch.h" /* --ranks: not part of the library */

#include <stdio.h>
#include <unistd.h>

#include "tutti/tutti.h"

#define CHECK(call)                                                                \
  do {                                                                             \
    if ((call) != tuttiSuccess) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tuttiGetLastError(NULL)); \
      return 1;                                                                    \
    }                                                                              \
  } while (0)

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0); /* who is to be killed must be read at once, also from a file or a pipe */
  int status = 0;
  if (launchAnswers(argc, argv, "", &status) || launchRanks(argc, argv, &status)) return status;

  tuttiComm_t comm;
  int size;
  CHECK(tuttiCommInitEnv(&comm, NULL));
  CHECK(tuttiCommCount(comm, &size));

  for (int step = 0; step < 60 && size > 1;) {
    int present = 1;
    const tuttiResult_t result = tuttiAllReduce(&present, &present, 1, tuttiInt32, tuttiSum, comm, NULL);
    if (result == tuttiSuccess) {
      printf("process %d, step %d: %d ranks\n", (int)getpid(), step, present);
      ++step;
      usleep(250 * 1000);
      continue;
    }
    fprintf(stderr, "process %d, step %d: %s\n", (int)getpid(), step, tuttiGetLastError(comm));
    if (result != tuttiRemoteError) return 1;

    /* Some ranks may have finished this step and others not: a real program agrees on where to go on. */
    tuttiComm_t rest;
    CHECK(tuttiCommShrink(comm, NULL, 0, &rest, NULL, 0));
    CHECK(tuttiCommDestroy(comm));
    comm = rest;
    CHECK(tuttiCommCount(comm, &size));
    CHECK(tuttiAllReduce(&step, &step, 1, tuttiInt32, tuttiMin, comm, NULL));
  }
  CHECK(tuttiCommDestroy(comm));
  return launchFinish(argv[0]);
}
