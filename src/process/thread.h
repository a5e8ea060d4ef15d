// Threads of the library's own.
#pragma once
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace tutti {

// While it lives, the calling thread takes no signal but those that tell of its own faults.
class SignalsHeld {
 public:
  SignalsHeld() noexcept;
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// While it lives, a write beyond the limit on the size of files (ulimit -f) gives the calling thread an error (EFBIG),
// and not the signal that ends the process. Leaves errno as it is.
class FileSignalHeld {
 public:
  FileSignalHeld() noexcept;
  ~FileSignalHeld();
  FileSignalHeld(const FileSignalHeld&) = delete;
  FileSignalHeld& operator=(const FileSignalHeld&) = delete;

 private:
  sigset_t before_;
  bool waited_;  // for one that came earlier, and is the program's
};

// Throws Error(kSystem) that says why there is no further one.
[[noreturn]] void refuseThread(const std::system_error& error);

// A thread on which no handler of the program's runs: it begins with its creator's mask of signals, and a program that
// keeps signals for one thread of its own knows nothing of this one. Throws Error(kSystem).
template <class Body>
std::thread startThread(Body&& body) {
  const SignalsHeld held;
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    refuseThread(error);
  }
}

}  // namespace tutti
