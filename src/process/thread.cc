#include "process/thread.h"

#include <cerrno>
#include <ctime>

#include "base/error.h"
#include "base/limits.h"

namespace tutti {

SignalsHeld::SignalsHeld() noexcept {
  sigset_t held;
  ::sigfillset(&held);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) ::sigdelset(&held, fault);
  ::pthread_sigmask(SIG_SETMASK, &held, &before_);
}

namespace {

sigset_t fileSignal() noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGXFSZ);
  return set;
}

bool fileSignalWaits() noexcept {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

FileSignalHeld::FileSignalHeld() noexcept {
  const sigset_t held = fileSignal();
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  waited_ = fileSignalWaits();
}

FileSignalHeld::~FileSignalHeld() {
  const int error = errno;
  const sigset_t held = fileSignal();
  const timespec atOnce{};
  if (!waited_ && fileSignalWaits()) ::sigtimedwait(&held, nullptr, &atOnce);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

void refuseThread(const std::system_error& error) {
  throw Error(ErrorCode::kSystem,
              fmt::format("cannot start a thread: {}{}", error.code().message(), limitOfTasks(error.code().value())));
}

SignalsHeld::~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace tutti
