#include <cuda_runtime_api.h>

#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"

using namespace tutti::emulation;

namespace {

struct ExecHandle {
  std::shared_ptr<GraphExec> exec;
};

Graph* graphOf(cudaGraph_t handle) { return reinterpret_cast<Graph*>(handle); }
ExecHandle* execOf(cudaGraphExec_t handle) { return reinterpret_cast<ExecHandle*>(handle); }

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const auto stream = streamOf(handle);
  return note(stream ? beginCapture(*stream, mode) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  const auto stream = streamOf(handle);
  if (!stream || !out) return note(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  std::unique_ptr<Graph> graph;
  const auto error = endCapture(*stream, graph);
  *out = reinterpret_cast<cudaGraph_t>(graph.release());
  return note(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const auto stream = streamOf(handle);
  if (!stream || !status) return note(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  // The question itself leaves that capture valid.
  if (stream == currentDevice().legacy && stream->device.blockingCaptures > 0)
    return note(cudaErrorStreamCaptureImplicit);
  *status = captureInfo(*stream).status;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* dependencyCount) {
  const auto error = cudaStreamIsCapturing(handle, status);
  if (error != cudaSuccess) return error;
  const auto info = captureInfo(*streamOf(handle));
  if (info.status != cudaStreamCaptureStatusActive) return cudaSuccess;
  if (id) *id = info.id;
  if (graph) *graph = reinterpret_cast<cudaGraph_t>(info.graph);
  if (dependencies) *dependencies = info.tail->data();
  if (edges) *edges = nullptr;  // all of them are plain ones
  if (dependencyCount) *dependencyCount = info.tail->size();
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (!mode) return note(cudaErrorInvalidValue);
  *mode = exchangeThreadMode(*mode);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  if (!handle || !count) return note(cudaErrorInvalidValue);
  auto& all = graphOf(handle)->nodes;
  for (size_t i = 0; nodes && i < *count; ++i)
    nodes[i] = i < all.size() ? reinterpret_cast<cudaGraphNode_t>(&all[i]) : nullptr;
  *count = nodes ? std::min(*count, all.size()) : all.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (!exec || !graph) return note(cudaErrorInvalidValue);
  if (const auto error = unsafeCall(); error != cudaSuccess) return note(error);
  *exec = reinterpret_cast<cudaGraphExec_t>(new ExecHandle{std::make_shared<GraphExec>(*graphOf(graph))});
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec) return note(cudaErrorInvalidValue);
  return note(submit(stream, [] {}));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec) return note(cudaErrorInvalidValue);
  return note(submit(stream, [graph = execOf(exec)->exec] { graph->run(); }));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph) return note(cudaErrorInvalidValue);
  delete graphOf(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  if (!exec) return note(cudaErrorInvalidValue);
  delete execOf(exec);
  return cudaSuccess;
}
