// A stream: work that runs in order on a thread of its own, while there is any.
#pragma once
#include <driver_types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::emulation {

struct Device;
struct Capture;
using Work = std::function<void()>;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // `blocking`: ordered with the device's NULL stream, in both directions.
  Stream(Device& owner, bool isBlocking) : device(owner), blocking(isBlocking), id(nextId()) {}

  void enqueue(Work work);
  uint64_t enqueued() const;     // how many pieces of work so far
  void waitFor(uint64_t count);  // until as many are done
  bool idle() const;

  Device& device;
  const bool blocking;
  const unsigned long long id;  // no other stream of the process ever has it

  // Of the capture that it takes part in; under the captures' mutex, but for the flag.
  std::atomic<bool> capturing{false};
  std::shared_ptr<Capture> capture;
  std::vector<cudaGraphNode_t> tail;  // what the next node comes after

 private:
  static unsigned long long nextId();
  void drain();

  mutable std::mutex mutex_;
  std::condition_variable done_;
  std::deque<Work> queue_;
  uint64_t enqueued_ = 0, completed_ = 0;
  bool draining_ = false;
};

// The stream behind a handle, NULL's being the current device's; null when the handle is none.
std::shared_ptr<Stream> streamOf(cudaStream_t handle);

// Queues the work behind what the stream has to come after, or adds it to the graph that the stream captures.
cudaError_t submit(Stream& stream, Work work);
cudaError_t submit(cudaStream_t handle, Work work);

// Waits for all that the stream has to do.
cudaError_t synchronize(Stream& stream);

}  // namespace tutti::emulation
