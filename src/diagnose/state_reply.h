// What a rank that waits asks the one it waits for - where are you? - and what that one's flight recorder says.
#pragma once
#include <optional>
#include <span>

#include "base/bytes.h"
#include "team/recorder.h"

namespace tutti::comm {

// A collective call of the rank that is asked.
struct Position {
  link::Fingerprint call;  // without its tag
  uint64_t tag = 0;
  CallState state = CallState::kQueued;
  int waitingFor = -1;
};

// A call in which the rank that is asked waits for the one that asks.
struct Stuck {
  CallLine line = CallLine::kCollective;
  Position position;
};

// A call of that rank's caller on another communicator, in which it waits meanwhile.
struct Elsewhere {
  uint64_t communicator = 0;  // its id
  int rank = -1;              // of the one that is asked, there
  Stuck stuck;
};

struct Question {
  CallLine line = CallLine::kCollective;
  uint32_t number = 0;  // of the asker's call on that line
  int asker = -1;
  bool operator==(const Question&) const = default;
};

struct StateReply {
  Question asked;                // calls wait beside each other, and an answer may come when its call has long ended
  std::optional<Position> same;  // the collective with that number, when it was asked about and is still known
  std::optional<Position> last;  // the latest collective
  // Where counts are private, of the collective that was asked about: what it sends the asker, and expects of it.
  std::optional<Recorder::PairCounts> counts;
  bool counterpart = false;         // its own part of the asker's call has been made
  std::optional<bool> onlyReadies;  // whether that part made a persistent call ready; of one that is still known
  std::optional<Stuck> stuck;
  uint32_t split = 0;                  // the number of the split that its caller is in, from 1 on; 0: in none
  std::optional<Elsewhere> elsewhere;  // looked for when it has not made its part
};

Position positionOf(const CallRecord& record) noexcept;

Bytes encode(const Question& question);
std::optional<Question> decodeQuestion(std::span<const std::byte> bytes);  // nullopt for bytes that are none
Bytes encode(const StateReply& said);
// Throws Error(kRemote) for bytes that are no answer; nullopt for an empty one.
std::optional<StateReply> decodeStateReply(std::span<const std::byte> bytes);

}  // namespace tutti::comm
