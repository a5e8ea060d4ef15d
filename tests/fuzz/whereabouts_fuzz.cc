// Where-are-you: the questions that a rank is asked, and the answers that it gets.
#include "base/error.h"
#include "diagnose/respond.h"
#include "diagnose/state_reply.h"
#include "fuzz/input.h"
#include "team/call.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::Input in(data, size);
  try {
    if (in.take<uint8_t>() % 2 == 0) {
      const auto recorder = std::make_shared<comm::Recorder>();
      const auto call = recorder->begin({}, in.take<link::Fingerprint>(), in.take<uint8_t>() % 2 == 0, 0);
      recorder->progressed(call, in.take<uint8_t>(), 0, 1);
      const auto said = comm::decodeStateReply(comm::respondFrom(recorder)(in.rest()));
      fuzz::require(!said || said->last);
      return 0;
    }
    const auto said = comm::decodeStateReply(in.rest());
    if (said && said->same) fuzz::require(!comm::describe(said->same->call).empty());
    if (said && said->stuck)
      fuzz::require(
          !comm::describeMessage(said->stuck->line == comm::CallLine::kSend, 0, said->stuck->position.call).empty());
    if (said && said->last) fuzz::require(said->last->state <= comm::CallState::kFailed);
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kRemote);
  }
  return 0;
}
