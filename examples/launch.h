/* `program --ranks N …` starts N copies of the program on this machine, each one rank of a job.
 *
 * What a launcher (mpirun, srun, torchrun, …) does for a cluster, in its smallest form: make an id, hand it to every
 * process together with its rank in the environment, wait for all. tuttiCommInitEnv then finds its place there. */
#ifndef TUTTI_EXAMPLES_LAUNCH_H
#define TUTTI_EXAMPLES_LAUNCH_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tutti/tutti.h"

static inline void launchSetNumber(const char* name, int value) {
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

/* A fresh copy of this program, not a fork that goes on: the parent may have threads, which a fork would lose. */
static inline void launchOne(char** argv, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent) execv("/proc/self/exe", argv);
  perror(argv[0]);
  _exit(127);
}

/* Waits for `count` processes: 0 when all ended well, else the status of the first that did not. */
static inline int launchWait(int count) {
  int first = 0;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    if (wait(&status) < 0) return 1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (first == 0) first = code;
  }
  return first;
}

/* Puts a new id, in hexadecimal, into the environment of the processes to come. */
static inline int launchMakeId(void) {
  char text[2 * TUTTI_UNIQUE_ID_BYTES + 1];
  tuttiUniqueId id;
  if (tuttiGetUniqueId(&id) != tuttiSuccess) {
    fprintf(stderr, "%s\n", tuttiGetLastError(NULL));
    return 0;
  }
  for (int i = 0; i < TUTTI_UNIQUE_ID_BYTES; ++i) snprintf(text + 2 * i, 3, "%02x", (unsigned char)id.internal[i]);
  return setenv("TUTTI_ID", text, 1) == 0;
}

static inline int launchAll(char** argv, int ranks) {
  static pid_t children[1024];
  const pid_t parent = getpid();
  if (!launchMakeId()) return 1;
  launchSetNumber("TUTTI_SIZE", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    launchSetNumber("TUTTI_RANK", rank);
    children[rank] = fork();
    if (children[rank] == 0) launchOne(argv, parent);
    if (children[rank] > 0) continue;
    perror("fork"); /* those started would wait for the others until their deadline */
    for (int i = 0; i < rank; ++i) kill(children[i], SIGTERM);
    launchWait(rank);
    return 1;
  }
  return launchWait(ranks);
}

/* Answers --help, and refuses what is neither "--ranks N" nor one of the program's `others`, "" for none: with others
 * the program looks for itself. Sets *status to what main should return, and returns 1; or 0, and the program goes on.
 */
static inline int launchAnswers(int argc, char** argv, const char* others, int* status) {
  const char* wrong = NULL;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      printf("usage: %s [--ranks N]%s%s\n", argv[0], *others ? " " : "", others);
      *status = fflush(stdout) == 0 ? 0 : 1;
      return 1;
    }
    if (strcmp(argv[i], "--ranks") == 0)
      ++i;
    else if (*others == '\0' && wrong == NULL)
      wrong = argv[i];
  }
  if (wrong == NULL) return 0;
  fprintf(stderr, "%s: what is %s? usage: %s [--ranks N]\n", argv[0], wrong, argv[0]);
  *status = 2;
  return 1;
}

/* For the end of main, which returns it: what was printed may still be on its way, and a full disk shows only here. */
static inline int launchFinish(const char* program) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  fprintf(stderr, "%s: process %d: cannot write to standard output%s%s\n", program, (int)getpid(), errno ? ": " : "",
          errno ? strerror(errno) : "");
  return 1;
}

/* With "--ranks N" among the arguments: runs N ranks to their end, sets *status to what main should return, and
 * returns 1. Without: returns 0, and this process is a rank itself. */
static inline int launchRanks(int argc, char** argv, int* status) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--ranks") != 0) continue;
    char* end = NULL;
    const long ranks = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
    if (ranks < 1 || ranks > 1024 || *end != '\0') {
      fprintf(stderr, "%s: --ranks takes a number from 1 to 1024\n", argv[0]);
      *status = 2;
      return 1;
    }
    memmove(argv + i, argv + i + 2, (size_t)(argc - i - 1) * sizeof *argv); /* with the NULL at the end */
    *status = launchAll(argv, (int)ranks);
    return 1;
  }
  return 0;
}

#endif
