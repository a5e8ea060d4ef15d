#include "diagnose/respond.h"

#include "diagnose/neighbours.h"
#include "diagnose/state_reply.h"

namespace tutti::comm {
namespace {

std::optional<Position> positionIn(const std::optional<CallRecord>& record) {
  return record ? std::optional(positionOf(*record)) : std::nullopt;
}

StateReply answerTo(const Question& question, const Recorder& recorder) {
  const bool collective = question.line == CallLine::kCollective;
  StateReply said;
  said.asked = question;
  // Before what is said of the counterpart: of a caller that was in a split, and had not made it then.
  said.split = recorder.split();
  if (const auto stuck = recorder.stuckOn(question.asker)) said.stuck = Stuck{stuck->line, positionOf(*stuck)};
  if (collective) said.same = positionIn(recorder.collective(question.number));
  said.last = positionIn(recorder.last(CallLine::kCollective));
  if (collective) said.counts = recorder.countsWith(question.asker, question.number);
  const CallLine line = counterpartOf(question.line);
  const int peer = collective ? -1 : question.asker;
  said.counterpart = recorder.begun(line, peer, question.number);
  if (const auto part = recorder.find(line, peer, question.number)) said.onlyReadies = part->onlyReadies;
  if (!said.counterpart) said.elsewhere = Neighbours::instance().elsewhere(recorder);
  return said;
}

}  // namespace

control::Respond respondFrom(std::shared_ptr<const Recorder> recorder) {
  return [recorder = std::move(recorder)](std::span<const std::byte> bytes) {
    const auto question = decodeQuestion(bytes);  // whoever asks what is none gets no answer that says anything
    return question ? encode(answerTo(*question, *recorder)) : Bytes{};
  };
}

}  // namespace tutti::comm
