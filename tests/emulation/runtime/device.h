// An emulated device: how much it runs at once, what went wrong there, and its streams.
#pragma once
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "emulation/device/residency.h"
#include "emulation/runtime/stream.h"

namespace tutti::emulation {

struct Device {
  explicit Device(int number);

  // Its streams that still exist, the NULL stream not among them.
  std::vector<std::shared_ptr<Stream>> streams();
  void add(const std::shared_ptr<Stream>& stream);
  // Waits for all work that was submitted so far.
  cudaError_t synchronize();
  void setMultiprocessors(unsigned count, unsigned blocksEach);

  const int ordinal;
  unsigned domain = 0, bus = 0, slot = 0;  // on the PCI bus
  std::atomic<unsigned> multiprocessors{132}, blocksEach{1};
  Failure failure;
  Residency residency{132};
  std::shared_ptr<Stream> legacy;
  std::atomic<int> blockingCaptures{0};  // of blocking streams
  std::atomic<bool> streamsWait{true};   // for words in memory

  std::mutex mutex;  // of what follows
  std::set<int> peers;

 private:
  std::vector<std::weak_ptr<Stream>> streams_;
};

int deviceCount() noexcept;
Device* findDevice(int ordinal) noexcept;  // null when there is none
Device& currentDevice() noexcept;          // of the calling thread
void setCurrentDevice(int ordinal) noexcept;
bool hasCurrentDevice() noexcept;  // whether the thread turned to one; if not, it is 0 that is current
void forgetCurrentDevice() noexcept;

}  // namespace tutti::emulation
