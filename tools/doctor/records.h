// The records that ranks leave (src/diagnose/dump.h has the format), as they are read back: checked, so that what
// follows can trust every number. Files come from other machines and from crashes: whatever is wrong with one is an
// error that names it.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tutti::doctor {

class BadRecord : public std::runtime_error {
 public:
  BadRecord(const std::string& file, const std::string& what) : std::runtime_error(file + ": " + what) {}
};

enum class Line : uint8_t { kCollective, kSend, kReceive };
enum class State : uint8_t { kQueued, kConnecting, kRunning, kDone, kFailed };
std::string_view nameOf(Line line) noexcept;
std::string_view nameOf(State state) noexcept;

struct Call {
  uint64_t order = 0;
  Line line = Line::kCollective;
  uint64_t number = 0;  // on its line; of messages: with its peer
  Collective kind = Collective::kAllReduce;
  DataType type = DataType::kInt8;
  uint64_t count = 0, bytes = 0;
  std::optional<ReduceOp> op;
  std::optional<int> root, peer, waitingFor;
  uint64_t tag = 0;  // none
  State state = State::kQueued;
  std::string algorithm;  // empty: not chosen yet
  uint64_t roundsDone = 0, rounds = 0;
  int64_t queuedNs = 0;
  std::optional<int64_t> endedNs;

  bool done() const noexcept { return state == State::kDone; }
  // Whether both ends of a collective, or of a message, may meet in these two calls.
  bool matches(const Call& other) const noexcept {
    return kind == other.kind && type == other.type && count == other.count && op == other.op && root == other.root &&
           tag == other.tag;
  }
};

struct Person {
  std::string host;
  int64_t pid = 0;
};

struct Failure {
  std::string code, text;
};

struct Record {
  std::string file;
  std::string version, communicator, name, why;
  int rank = 0, size = 1;
  std::vector<Person> people;  // of all ranks
  std::optional<Failure> failure;
  int64_t writtenNs = 0;
  std::vector<Call> calls;  // oldest first
};

// Both throw BadRecord. `file` is for texts.
Record parseRecord(const std::string& file, std::string_view text);
Record readRecord(const std::string& file);

// Files as they are, folders as the records (tutti-*.json) in them. Throws BadRecord for a folder without any.
std::vector<std::string> findRecords(const std::vector<std::string>& paths);

// Of one communicator, sorted by rank. Throws BadRecord for two of one rank, or where they contradict each other.
struct Job {
  std::string communicator, name;
  int size = 1;
  std::vector<Person> people;
  std::vector<Record> records;
};
std::vector<Job> groupRecords(std::vector<Record> records);

}  // namespace tutti::doctor
