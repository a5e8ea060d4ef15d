// A graph: pieces of work, and which comes after which.
#pragma once
#include <driver_types.h>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "emulation/runtime/stream.h"

namespace tutti::emulation {

struct Node {
  Work work;
  std::vector<size_t> after;
  size_t number = 0;
};

inline Node* nodeOf(cudaGraphNode_t handle) { return reinterpret_cast<Node*>(handle); }

struct Graph {
  cudaGraphNode_t add(Work work, const std::vector<cudaGraphNode_t>& after);
  // Whether every node is one of `tail` or comes before one.
  bool endsIn(const std::vector<cudaGraphNode_t>& tail) const;

  std::deque<Node> nodes;  // each behind those that it comes after
};

// A graph that can be launched: a copy, which the graph may outlive or not.
class GraphExec : public std::enable_shared_from_this<GraphExec> {
 public:
  explicit GraphExec(const Graph& graph);
  // Runs every node, those that do not depend on each other side by side. One run at a time.
  void run();

 private:
  struct Run;
  void runFrom(size_t node, const std::shared_ptr<Run>& run);

  std::vector<Node> nodes_;
  std::vector<std::vector<size_t>> next_;
  std::mutex running_;
};

}  // namespace tutti::emulation
