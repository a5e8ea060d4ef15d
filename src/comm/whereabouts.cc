#include "comm/whereabouts.h"

#include <bit>

#include "base/error.h"

namespace tutti::comm {
namespace {

// A fingerprint crosses as two words.
struct Words {
  uint64_t count, call;
};

void put(Writer& out, const std::optional<CallRecord>& record) {
  out.value<uint8_t>(record.has_value());
  if (!record) return;
  const auto words = std::bit_cast<Words>(record->fingerprint);
  out.value(words.count).value(words.call).value(record->state).value(int32_t{record->waitingFor});
}

std::optional<Position> getPosition(Reader& in) {
  if (in.value<uint8_t>() == 0) return std::nullopt;
  Position position;
  Words words{};
  words.count = in.value<uint64_t>();
  words.call = in.value<uint64_t>();
  position.call = std::bit_cast<link::Fingerprint>(words);
  position.state = in.value<CallState>();
  position.waitingFor = in.value<int32_t>();
  if (position.state > CallState::kFailed) throw Error(ErrorCode::kRemote, "an answer with an unknown state");
  return position;
}

}  // namespace

Bytes encode(const Question& question) {
  return Writer().value(question.line).value(question.number).value(int32_t{question.asker}).take();
}

control::Respond respondFrom(std::shared_ptr<const Recorder> recorder) {
  return [recorder = std::move(recorder)](std::span<const std::byte> bytes) {
    Question question;
    if (bytes.size() != encode(question).size()) return Bytes{};
    Reader in(bytes);
    question.line = in.value<CallLine>();
    question.number = in.value<uint32_t>();
    question.asker = in.value<int32_t>();
    const bool collective = question.line == CallLine::kCollective;
    const auto stuck = recorder->stuckOn(question.asker);
    Writer out;
    out.value(question.number);
    put(out, collective ? recorder->collective(question.number) : std::nullopt);
    put(out, recorder->last(CallLine::kCollective));
    out.value<uint8_t>(
        recorder->begun(counterpartOf(question.line), collective ? -1 : question.asker, question.number));
    out.value(stuck ? stuck->line : CallLine::kCollective);
    put(out, stuck);
    return out.take();
  };
}

std::optional<Whereabouts> decodeWhereabouts(std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  Reader in(bytes);
  Whereabouts said;
  said.asked = in.value<uint32_t>();
  said.same = getPosition(in);
  said.last = getPosition(in);
  said.counterpart = in.value<uint8_t>() != 0;
  const auto line = in.value<CallLine>();
  if (line > CallLine::kReceive) throw Error(ErrorCode::kRemote, "an answer with an unknown kind of call");
  if (const auto position = getPosition(in)) said.stuck = Stuck{line, *position};
  return said;
}

}  // namespace tutti::comm
