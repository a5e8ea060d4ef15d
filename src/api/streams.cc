// Streams of host communicators. As with communicators, the shell behind a handle outlives what it is for.
#include "api/check.h"
#include "api/guard.h"
#include "api/handle_pool.h"
#include "process/fork.h"

using namespace tutti;
using namespace tutti::api;

namespace {

tuttiStream_t makeStream() {
  auto stream = std::make_shared<engine::Stream>();
  const tuttiStream_t shell = poolOf<CUstream_st>.take();
  shell->generation = fork::generation();
  shell->stream = std::move(stream);
  return shell;
}

// Its queue, which lives on until what is queued is done; the handle is a destroyed stream's from now on.
std::shared_ptr<engine::Stream> retire(tuttiStream_t stream, std::shared_ptr<engine::Stream> queue) {
  stream->stream.reset();
  poolOf<CUstream_st>.putBack(stream);
  return queue;
}

std::shared_ptr<engine::Stream> needStream(tuttiStream_t stream, const char* call) {
  checkPointer(stream, call, "stream");
  return checkStream(stream, call);
}

}  // namespace

namespace tutti::api {

bool isStream(tuttiStream_t stream) { return poolOf<CUstream_st>.holds(stream); }

}  // namespace tutti::api

extern "C" {

tuttiResult_t tuttiStreamCreate(tuttiStream_t* stream, unsigned int flags) {
  return guarded(nullptr, [&] {
    checkFlags(flags, "tuttiStreamCreate");
    checkPointer(stream, "tuttiStreamCreate", "stream");
    *stream = makeStream();
  });
}

tuttiResult_t tuttiStreamDestroy(tuttiStream_t stream) {
  return guarded(nullptr, [&] { retire(stream, needStream(stream, "tuttiStreamDestroy"))->synchronize(); });
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
