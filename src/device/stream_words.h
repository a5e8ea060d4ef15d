// Streams that wait by themselves, for words of memory, and what such a stream does in between.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "device/fold.h"
#include "device/launches.h"

namespace tutti::device {

// What a stream does to a word of memory by itself, with no kernel: it waits until the word has the value, or writes
// it.
struct WordOp {
  enum class Kind : uint8_t { kWait, kWrite } kind = Kind::kWait;
  uint64_t* word = nullptr;  // of any GPU's memory that this one reaches, or pinned
  uint64_t value = 0;
};

// A stream of one communicator's own, beside those of the user: what waits in it holds no multiprocessor. Used within
// StreamWordPort::beside() alone. Everything runs in the order in which it was queued; throws Error(kCuda).
class SideQueue {
 public:
  virtual ~SideQueue() = default;
  // Whoever waits for what one of them writes sees all that was queued before it.
  virtual void words(std::span<const WordOp> ops) = 0;
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;  // of GPUs, or pinned
  virtual void fold(const Fold& fold) = 0;
  virtual void requireAlive() = 0;  // throws when the GPU has failed: nothing goes on there
};

// All of them throw Error(kCuda), with CUDA's text, what was asked for and on which device. Any thread; the calling
// thread's current device stays as it was.
class StreamWordPort {
 public:
  virtual ~StreamWordPort() = default;
  // Whether streams of this GPU can wait for words in memory. False: the driver or the GPU can not (`why`).
  virtual bool streamsWait(std::string& why) noexcept = 0;
  virtual std::unique_ptr<SideQueue> newSideQueue() = 0;
  // What `queueAll` puts into `queues` runs as one launch would (see there) whose parts, one a queue, run side by side.
  virtual void beside(std::span<SideQueue* const> queues, std::span<const DeviceStream> streams,
                      std::span<LaunchOrder* const> orders, const std::function<void()>& queueAll) = 0;
  // Words that streams wait for, looked at and changed beside all streams.
  virtual uint64_t readWord(const uint64_t* word) = 0;
  virtual void writeWords(std::span<const WordOp> ops) = 0;
};

}  // namespace tutti::device
