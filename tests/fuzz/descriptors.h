// What holds for everything that takes sockets or memory of others, whatever came in: no descriptor stays open.
#pragma once
#include <chrono>
#include <thread>

#include "base/deadline.h"
#include "fuzz/input.h"
#include "support/open_files.h"
#include "support/patience.h"
#include "window/own_window.h"

namespace tutti::fuzz {

// Whose descriptors a process keeps once it has one.
inline void openOwnWindow() {
  std::string why;
  window::OwnWindow::ofProcess().fileForPeers(why);
}

// An input's whole way, for LLVMFuzzerTestOneInput. What it began may end in a thread of the library's, a moment later;
// so there is one count, taken before the first input. /proc is read one entry after the other: while a thread opens
// one and closes another, neither may be seen, and a count taken between two inputs may be of one that is about to
// close.
template <class Run>
int leavingNoneOpen(Run run, const uint8_t* data, size_t size) {
  static const size_t before = (openOwnWindow(), test::openFiles());
  run(Input(data, size));
  const auto deadline = Deadline::in(test::longWait());
  while (test::openFiles() != before) {
    if (deadline.passed()) test::printOpenFiles();
    require(!deadline.passed());
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return 0;
}

}  // namespace tutti::fuzz
