// Streams of host communicators. As with communicators, the shell behind a handle outlives what it is for.
#include "api/check.h"
#include "api/guard.h"
#include "api/shelf.h"
#include "base/fork.h"

using namespace tutti;
using namespace tutti::api;

namespace {

Shelf<CUstream_st>& shelf() {
  static auto* const shelf = new Shelf<CUstream_st>;  // outlives every thread of the program
  return *shelf;
}

tuttiStream_t makeStream() {
  auto stream = std::make_shared<engine::Stream>();
  const tuttiStream_t shell = shelf().take();
  shell->generation = fork::generation();
  shell->stream = std::move(stream);
  return shell;
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
    shelf().putBack(stream);
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
