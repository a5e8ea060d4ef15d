#include "perf/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "perf/environment.h"

namespace tutti::perf {
namespace {

constexpr char kHint[] =
    "SIGUSR2 asks for the record of the last calls: set TUTTI_DUMP_DIR to a folder before the start to get one\n";

// Only what a signal handler may call.
void sayWhatToSet(int) {
  const int error = errno;
  const ssize_t written = write(STDERR_FILENO, kHint, sizeof kHint - 1);
  static_cast<void>(written);  // there is nobody to tell
  errno = error;
}

// What the handler finds: set while a file is unfinished. Whoever takes it out has it.
std::atomic<char*> unfinished{nullptr};

// Installed with SA_RESETHAND: the signal that is raised waits until this returns, and then ends the process.
void removeUnfinished(int signal) {
  if (const char* path = unfinished.exchange(nullptr)) unlink(path);
  raise(signal);
}

}  // namespace

HeldSignals::HeldSignals() {
  signal(SIGCHLD, SIG_DFL);  // where it is ignored, as some shells leave it, no child's end is ever told
  sigemptyset(&held_);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR2}) sigaddset(&held_, signal);
  pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

sigset_t recordSignalAlone() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  return one;
}

void holdRecordSignal() {
  const sigset_t one = recordSignalAlone();
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  if (variable("TUTTI_DUMP_DIR")) return;
  struct sigaction action {};
  action.sa_handler = sayWhatToSet;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
}

void removeOnSignal(const std::string& path) {
  std::free(unfinished.exchange(strdup(path.c_str())));
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;  // ignored, as nohup leaves it
    struct sigaction action {};
    action.sa_handler = removeUnfinished;
    action.sa_flags = SA_RESETHAND;
    sigaction(number, &action, nullptr);
  }
}

void keepOnSignal(const std::string& path) {
  char* mine = unfinished.exchange(nullptr);
  if (mine != nullptr && path != mine) mine = unfinished.exchange(mine);  // another file was finished
  std::free(mine);
}

void admitRecordSignal() {
  const sigset_t one = recordSignalAlone();
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace tutti::perf
