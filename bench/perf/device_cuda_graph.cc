// A capture over several streams: it begins on the first, the others join it through an event, and the first waits for
// them before it ends. So one group's calls on streams of their own, also of several GPUs, are one graph.
#include <memory>

#include "perf/device.h"
#include "perf/device_cuda.h"

namespace tutti::perf::device {
namespace {

class Event {
 public:
  explicit Event(int device) {
    use(device);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), device, "making an event");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  // What `waiting` holds from now on runs behind what `first` holds by now; the event is of the device of `first`.
  void order(const Queue& first, const Queue& waiting) {
    use(first.device);
    check(cudaEventRecord(event_, first.stream), first.device, "marking a place in a stream");
    use(waiting.device);
    check(cudaStreamWaitEvent(waiting.stream, event_, 0), waiting.device, "ordering a stream behind another");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Capture {
 public:
  explicit Capture(const Queue& queue) : queue_(queue) {
    use(queue.device);
    // Of this thread alone: what others do meanwhile is not forbidden by it.
    check(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeThreadLocal), queue.device, "beginning a capture");
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (!ended_) cudaStreamEndCapture(queue_.stream, &graph_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  cudaGraph_t end() {
    use(queue_.device);
    ended_ = true;
    check(cudaStreamEndCapture(queue_.stream, &graph_), queue_.device, "ending a capture");
    return graph_;
  }

 private:
  Queue queue_;
  cudaGraph_t graph_ = nullptr;
  bool ended_ = false;
};

}  // namespace

Graph::Graph(const std::vector<Queue>& queues, const std::function<void()>& record) : queue_(queues.front()) {
  std::vector<std::unique_ptr<Event>> events;  // before the capture: making one is not for a stream
  for (const Queue& queue : queues) events.push_back(std::make_unique<Event>(queue.device));
  Capture capture(queue_);
  for (size_t i = 1; i < queues.size(); ++i) events.front()->order(queue_, queues[i]);
  record();
  for (size_t i = 1; i < queues.size(); ++i) events[i]->order(queues[i], queue_);
  const cudaGraph_t graph = capture.end();
  check(cudaGraphInstantiate(&exec_, graph, 0), queue_.device, "making a graph");
  check(cudaGraphUpload(exec_, queue_.stream), queue_.device, "loading a graph");
}

Graph::~Graph() { cudaGraphExecDestroy(exec_); }

void Graph::launch() {
  use(queue_.device);
  check(cudaGraphLaunch(exec_, queue_.stream), queue_.device, "launching a graph");
}

}  // namespace tutti::perf::device
