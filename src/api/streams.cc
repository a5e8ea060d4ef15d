// Streams of host communicators. As with communicators, the shell behind a handle is never freed.
#include <mutex>
#include <vector>

#include "api/check.h"
#include "api/guard.h"
#include "base/fork.h"

using namespace tutti;
using namespace tutti::api;

namespace {

tuttiStream_t makeStream() {
  static std::mutex mutex;
  static auto* const shells = new std::vector<std::unique_ptr<CUstream_st>>;  // outlives every thread of the program
  auto shell = std::make_unique<CUstream_st>();
  shell->generation = fork::generation();
  shell->stream = std::make_shared<engine::Stream>();
  std::lock_guard lock(mutex);
  return shells->emplace_back(std::move(shell)).get();
}

std::shared_ptr<engine::Stream> needStream(tuttiStream_t stream, const char* call) {
  checkPointer(stream, call, "stream");
  return checkStream(stream, call);
}

}  // namespace

extern "C" {

tuttiResult_t tuttiStreamCreate(tuttiStream_t* stream) {
  return guarded(nullptr, [&] {
    checkPointer(stream, "tuttiStreamCreate", "stream");
    *stream = makeStream();
  });
}

tuttiResult_t tuttiStreamDestroy(tuttiStream_t stream) {
  return guarded(nullptr, [&] {
    needStream(stream, "tuttiStreamDestroy")->synchronize();
    stream->stream.reset();
  });
}

tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream) {
  return guarded(nullptr, [&] { needStream(stream, "tuttiStreamSynchronize")->synchronize(); });
}

tuttiResult_t tuttiStreamQuery(tuttiStream_t stream) {
  bool idle = false;
  const tuttiResult_t result = guarded(nullptr, [&] { idle = needStream(stream, "tuttiStreamQuery")->idle(); });
  return result == tuttiSuccess && !idle ? tuttiInProgress : result;
}

}  // extern "C"
