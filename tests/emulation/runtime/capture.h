// Stream capture: work that is submitted becomes nodes of a graph. Events carry a capture from stream to stream.
#pragma once
#include <memory>
#include <thread>
#include <vector>

#include "emulation/runtime/graph.h"
#include "emulation/runtime/stream.h"

namespace tutti::emulation {

struct Capture {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id owner;
  Stream* origin = nullptr;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<std::shared_ptr<Stream>> streams;  // that take part
  bool invalid = false, ended = false;
};

// Where a stream was when an event was recorded in a capture.
struct CapturePoint {
  std::shared_ptr<Capture> capture;
  std::vector<cudaGraphNode_t> tail;
};

cudaError_t beginCapture(Stream& stream, cudaStreamCaptureMode mode);
cudaError_t endCapture(Stream& stream, std::unique_ptr<Graph>& graph);
cudaError_t captureWork(Stream& stream, Work work);
CapturePoint capturePoint(Stream& stream);
// The stream goes on behind the point; one that did not capture joins the capture.
cudaError_t joinCapture(Stream& stream, const CapturePoint& point);
// The capture, if there still is one, has failed; gives back `error`.
cudaError_t spoil(Stream& stream, cudaError_t error);
// Work of the NULL stream would wait for blocking streams that capture: that spoils their captures.
bool spoilsCapture(Device& device);
// A call that CUDA forbids during captures: it spoils those that the thread's mode protects. cudaSuccess: go on.
cudaError_t unsafeCall();
cudaStreamCaptureMode exchangeThreadMode(cudaStreamCaptureMode mode);

struct CaptureInfo {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  Graph* graph = nullptr;
  const std::vector<cudaGraphNode_t>* tail = nullptr;
};
CaptureInfo captureInfo(Stream& stream);

}  // namespace tutti::emulation
