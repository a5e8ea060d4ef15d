// A block of CUDA threads on one thread of the process: each is a fiber, and they run in rounds, shuffled by the seed.
// A fiber runs until it polls memory, waits for others, or ends.
#pragma once
#include <vector_types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "emulation/device/fiber.h"
#include "emulation/device/grid.h"
#include "emulation/device/shared_memory.h"

namespace tutti::emulation {

inline constexpr unsigned kLanes = 32;

using Place = std::source_location;

enum class Wait : uint8_t { kNone, kBarrier, kWarp };

// What a lane brings to a meeting of its warp, and what it takes away.
struct Exchange {
  const char* operation = "";
  uint32_t mask = 0;
  uint64_t offer = 0;
  uint32_t source = 0;    // the lane whose offer it wants
  bool ordered = false;   // memory accesses before the meeting come before those after it
  uint64_t received = 0;  // the source's offer; poison when it takes no part
  uint32_t ballot = 0;    // the lanes whose offer is not 0
};

struct Thread {
  Fiber* fiber = nullptr;
  uint3 index{};
  uint32_t number = 0;  // in the block; x first
  bool ended = false;
  Wait wait = Wait::kNone;
  const char* operation = "";  // where it waits
  Place place;
  Exchange* exchange = nullptr;
  bool vote = false;       // of a barrier
  unsigned votes = 0;      // of the block, at the last barrier
  unsigned barriers = 0;   // that it has passed
  bool converged = false;  // nothing has come between __syncwarp and now that could take the lanes apart
  char tag = 0;            // for the sanitizer
};

class Block {
 public:
  Block(const Grid& grid, uint3 index);
  ~Block();

  // Runs the block to its end, or to the device's failure.
  void run();

  // --- by the thread that runs ---
  void yield() noexcept;
  void meetBlock(const char* operation, bool vote, const Place& place) noexcept;
  void meetWarp(Exchange& exchange, const Place& place) noexcept;
  // Ends the device's kernels. The text is told with the kernel's name, the block and the thread.
  [[noreturn]] void fail(std::string what) noexcept;

  Thread& thread() noexcept { return *current_; }
  SharedMemory& shared() noexcept { return shared_; }

 private:
  struct Runner;
  void prepare();
  void round();
  void shuffle();
  void step(Thread& thread);
  void rest();
  void suspend() noexcept;
  void leave() noexcept;  // the running thread has returned
  void checkBarrier(const char* operation, const Place& place) noexcept;
  void openBarrier() noexcept;
  void checkMask(const Exchange& exchange) noexcept;
  bool warpComplete(uint32_t mask) noexcept;
  void deliver(uint32_t mask) noexcept;
  void wake(Thread& thread) noexcept;
  void reportStuck();
  Thread* lane(unsigned lane) noexcept;  // of the running thread's warp; null beyond the block's end
  std::string describe(const Thread* thread, const std::string& what) const;

  const Grid& grid_;
  uint3 index_;
  uint64_t random_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Thread[]> threads_;
  unsigned count_, live_, atBarrier_ = 0;
  std::vector<Thread*> ready_, turn_;
  Thread* current_ = nullptr;
  bool moved_ = false;          // somebody did more than poll in this round
  unsigned idleRounds_ = 0;     // one after the other
  std::array<char, 2> tags_{};  // of even and odd barriers, for the sanitizer
  SharedMemory shared_;
};

// The block that runs on this thread; null outside of kernels.
Block* currentBlock() noexcept;

}  // namespace tutti::emulation

// CUDA's own names for where a thread is. The block keeps them up to date with every switch.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
