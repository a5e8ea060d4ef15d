#include "diagnose/state_reply.h"

#include <bit>

#include "base/error.h"

namespace tutti::comm {
namespace {

void put(Writer& out, const Question& question) {
  out.value(question.line).value(question.number).value(int32_t{question.asker});
}

void put(Writer& out, const Position& position) {
  const auto words = position.call.words();
  out.value(words[0]).value(words[1]).value(position.tag).value(position.state).value(int32_t{position.waitingFor});
}

void put(Writer& out, const std::optional<Position>& position) {
  out.value<uint8_t>(position.has_value());
  if (position) put(out, *position);
}

void put(Writer& out, const std::optional<Elsewhere>& there) {
  out.value<uint8_t>(there.has_value());
  if (!there) return;
  out.value(there->communicator).value(int32_t{there->rank}).value(there->stuck.line);
  put(out, there->stuck.position);
}

void put(Writer& out, const std::optional<Recorder::PairCounts>& counts) {
  out.value<uint8_t>(counts.has_value());
  if (counts) out.value(counts->sent).value(counts->expected);
}

void put(Writer& out, const std::optional<bool>& flag) {
  out.value<uint8_t>(flag.has_value());
  if (flag) out.value<uint8_t>(*flag);
}

std::optional<bool> getFlagIfAny(Reader& in) {
  return in.value<bool>() ? std::optional(in.value<bool>()) : std::nullopt;
}

std::optional<Recorder::PairCounts> getCountsIfAny(Reader& in) {
  if (!in.value<bool>()) return std::nullopt;
  Recorder::PairCounts counts;
  counts.sent = in.value<uint64_t>();
  counts.expected = in.value<uint64_t>();
  return counts;
}

Position getPosition(Reader& in) {
  Position position;
  link::Fingerprint::Words words{};
  for (uint64_t& word : words) word = in.value<uint64_t>();
  position.call = std::bit_cast<link::Fingerprint>(words);
  position.tag = in.value<uint64_t>();
  position.state = in.oneOf(CallState::kQueued, CallState::kFailed);
  position.waitingFor = in.value<int32_t>();
  return position;
}

std::optional<Position> getPositionIfAny(Reader& in) {
  return in.value<bool>() ? std::optional(getPosition(in)) : std::nullopt;
}

CallLine getLine(Reader& in) { return in.oneOf(CallLine::kCollective, CallLine::kReceive); }

Question getQuestion(Reader& in) {
  Question question;
  question.line = getLine(in);
  question.number = in.value<uint32_t>();
  question.asker = in.value<int32_t>();
  return question;
}

std::optional<Elsewhere> getElsewhereIfAny(Reader& in) {
  if (!in.value<bool>()) return std::nullopt;
  Elsewhere there;
  there.communicator = in.value<uint64_t>();
  there.rank = in.value<int32_t>();
  there.stuck.line = getLine(in);
  there.stuck.position = getPosition(in);
  return there;
}

}  // namespace

Position positionOf(const CallRecord& record) noexcept {
  return {record.fingerprint, record.tag, record.state, record.waitingFor};
}

std::optional<Question> decodeQuestion(std::span<const std::byte> bytes) try {
  Reader in(bytes);
  const Question question = getQuestion(in);
  return in.empty() ? std::optional(question) : std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

Bytes encode(const Question& question) {
  Writer out;
  put(out, question);
  return out.take();
}

// Inverse: decodeStateReply.
Bytes encode(const StateReply& said) {
  Writer out;
  put(out, said.asked);
  put(out, said.same);
  put(out, said.last);
  put(out, said.counts);
  out.value<uint8_t>(said.counterpart);
  put(out, said.onlyReadies);
  out.value(said.stuck ? said.stuck->line : CallLine::kCollective);
  put(out, said.stuck ? std::optional(said.stuck->position) : std::nullopt);
  out.value(said.split);
  put(out, said.elsewhere);
  return out.take();
}

std::optional<StateReply> decodeStateReply(std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  Reader in(bytes);
  StateReply said;
  said.asked = getQuestion(in);
  said.same = getPositionIfAny(in);
  said.last = getPositionIfAny(in);
  said.counts = getCountsIfAny(in);
  said.counterpart = in.value<bool>();
  said.onlyReadies = getFlagIfAny(in);
  const auto line = getLine(in);
  if (const auto position = getPositionIfAny(in)) said.stuck = Stuck{line, *position};
  said.split = in.value<uint32_t>();
  said.elsewhere = getElsewhereIfAny(in);
  return said;
}

}  // namespace tutti::comm
