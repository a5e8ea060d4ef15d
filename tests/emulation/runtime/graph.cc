#include "emulation/runtime/graph.h"

#include <condition_variable>

#include "emulation/device/workers.h"

namespace tutti::emulation {

cudaGraphNode_t Graph::add(Work work, const std::vector<cudaGraphNode_t>& after) {
  Node& node = nodes.emplace_back();
  node.work = std::move(work);
  node.number = nodes.size() - 1;
  for (const auto handle : after) node.after.push_back(nodeOf(handle)->number);
  return reinterpret_cast<cudaGraphNode_t>(&node);
}

bool Graph::endsIn(const std::vector<cudaGraphNode_t>& tail) const {
  std::vector<bool> reached(nodes.size(), false);
  for (const auto handle : tail) reached[nodeOf(handle)->number] = true;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!reached[i]) return false;
    for (const size_t before : nodes[i].after) reached[before] = true;
  }
  return true;
}

struct GraphExec::Run {
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<size_t> missing;  // of each node: those before it that have not run yet
  size_t left = 0;
};

GraphExec::GraphExec(const Graph& graph) : nodes_(graph.nodes.begin(), graph.nodes.end()), next_(nodes_.size()) {
  for (const Node& node : nodes_)
    for (const size_t before : node.after) next_[before].push_back(node.number);
}

void GraphExec::run() {
  const std::lock_guard one(running_);
  const auto run = std::make_shared<Run>();
  run->left = nodes_.size();
  for (const Node& node : nodes_) run->missing.push_back(node.after.size());
  for (const Node& node : nodes_)
    if (node.after.empty()) runOnWorker([this, run, number = node.number] { runFrom(number, run); });
  std::unique_lock lock(run->mutex);
  run->ended.wait(lock, [&] { return run->left == 0; });
}

void GraphExec::runFrom(size_t node, const std::shared_ptr<Run>& run) {
  nodes_[node].work();
  const std::lock_guard lock(run->mutex);
  for (const size_t after : next_[node])
    if (--run->missing[after] == 0) runOnWorker([this, run, after] { runFrom(after, run); });
  if (--run->left == 0) run->ended.notify_all();
}

}  // namespace tutti::emulation
