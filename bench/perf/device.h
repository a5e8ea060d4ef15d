// GPUs as the programs use them: memory, streams and graphs. A port: the files device_cuda*.cc implement it, and
// device_absent.cc in a build without CUDA.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tutti/tutti.h"

struct CUgraphExec_st;

namespace tutti::perf::device {

// All of these throw Failure, with CUDA's own words and the device, unless they say otherwise. The calling thread's
// current device is another one afterwards.

// At least 1. Throws UsageError, with the reason, where there is none or the program was built without CUDA.
int count();

struct Identity {
  std::string name, bus;  // "NVIDIA H200", "0000:1b:00"
};
Identity identify(int device);

void* allocate(int device, size_t bytes);  // zeroed
void release(int device, void* memory) noexcept;
// Both wait for the copy, and for nothing that is on the streams of newStream().
void copyIn(int device, void* to, const void* from, size_t bytes);
void copyOut(int device, void* to, const void* from, size_t bytes);

// A NULL stream is the legacy default stream of its device.
struct Queue {
  int device = -1;
  tuttiStream_t stream = nullptr;
};
tuttiStream_t newStream(int device);
void synchronize(const Queue& queue);
void destroy(const Queue& queue) noexcept;

// Work that was captured, to be launched as a whole again and again.
class Graph {
 public:
  // Calls `record`, and takes what it puts on any of the queues. They are streams of newStream(), each of them once.
  Graph(const std::vector<Queue>& queues, const std::function<void()>& record);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();
  // Onto the first of the queues.
  void launch();

 private:
  Queue queue_;
  CUgraphExec_st* exec_ = nullptr;
};

}  // namespace tutti::perf::device
