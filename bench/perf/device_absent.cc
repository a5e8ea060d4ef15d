// The port for builds without CUDA: count() says so, and nothing else is ever called.
#include "perf/device.h"
#include "perf/failure.h"

namespace tutti::perf::device {
namespace {

[[noreturn]] void refuse() {
  throw UsageError(
      "--device cuda: this program was built without CUDA: build it where nvcc is, with -DTUTTI_CUDA=ON, or leave "
      "--device out");
}

}  // namespace

int count() { refuse(); }
Identity identify(int) { refuse(); }
void* allocate(int, size_t) { refuse(); }
void release(int, void*) noexcept {}
void copyIn(int, void*, const void*, size_t) { refuse(); }
void copyOut(int, void*, const void*, size_t) { refuse(); }
tuttiStream_t newStream(int) { refuse(); }
void synchronize(const Queue&) { refuse(); }
void destroy(const Queue&) noexcept {}

Graph::Graph(const std::vector<Queue>&, const std::function<void()>&) { refuse(); }
Graph::~Graph() = default;
void Graph::launch() { refuse(); }

}  // namespace tutti::perf::device
