// One launch of a kernel: what to run, and what all of its blocks share.
#pragma once
#include <vector_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace tutti::emulation {

struct Launch {
  const void* kernel = nullptr;  // its address, for its name
  dim3 grid, block;
  size_t sharedBytes = 0;  // dynamic shared memory
  std::function<void()> body;
};

// What a GPU's error is to all the kernels that run there: the first one ends them all, and its text is kept.
class Failure {
 public:
  bool happened() const noexcept { return happened_.load(std::memory_order_acquire); }  // with report()
  void report(const std::string& text);
  std::string text() const;
  void clear();

 private:
  std::atomic<bool> happened_{false};
  mutable std::mutex mutex_;
  std::string text_;
};

struct Grid {
  const Launch& launch;
  Failure& failure;
  uint64_t seed = 0;  // of this launch
  // What else happens to memory, before each turn of a thread, and so between any two looks at what it polls. The block
  // then has nobody else to make way for. Only for who runs a block by itself.
  std::function<void()> meanwhile = {};
};

// The seed of the orders in which fibers run. Each launch and block makes its own from it; reports say it.
void setSeed(uint64_t seed);
uint64_t seed() noexcept;
uint64_t nextLaunchSeed() noexcept;

// "tutti::cuda::execute(Launch)" from the symbols of the module that holds the address, or the address.
std::string kernelName(const void* kernel);

}  // namespace tutti::emulation
