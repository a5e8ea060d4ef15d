// A fiber: a stack of its own, on which a function runs until it steps back to the one who resumed it.
//
// The sanitizers are told of every switch. ThreadSanitizer takes each fiber for a thread: its start comes after what
// the resuming thread did before, its end before what that thread does next; between them only barriers order fibers.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace tutti::emulation {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() enters function(argument). The fiber must not be in the middle of another run.
  void start(void (*function)(void*), void* argument);
  // Runs the fiber until it suspends or its function returns. Always by the same thread in one run.
  void resume();
  // By the fiber itself: back behind the resume().
  void suspend();
  // After the run, by the thread that started it.
  void join();
  // Gives up a run that is suspended. Nothing on its stack is destroyed, as nothing is when a GPU stops a kernel.
  void abandon();

 private:
  struct Switches;
  void leaveForGood();

  std::byte* mapping_ = nullptr;  // a guard page, then the stack
  void* inside_ = nullptr;        // where each side goes on
  void* outside_ = nullptr;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
  // The address sanitizer's view of the two stacks, the thread sanitizer's of the two threads.
  void* fakeInside_ = nullptr;
  void* fakeOutside_ = nullptr;
  const void* outsideStack_ = nullptr;
  size_t outsideBytes_ = 0;
  void* threadInside_ = nullptr;
  void* threadOutside_ = nullptr;
  char tag_ = 0;
};

// Fibers between two uses: a stack costs system calls, and pages that are already there.
std::vector<std::unique_ptr<Fiber>> takeFibers(size_t count);
void giveFibers(std::vector<std::unique_ptr<Fiber>> fibers);

}  // namespace tutti::emulation
