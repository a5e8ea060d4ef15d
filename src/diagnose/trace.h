// What TUTTI_TRACE asks for of a communicator on host memory: its calls, and what their channels waited for. A row for
// the collectives and one for the messages to and from each peer; beside each of them, one a channel for its waits.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "team/call.h"
#include "team/recorder.h"
#include "team/team.h"

namespace tutti::comm {

// The calls of a line pass one after the other, and so do the waits of each of their channels.
struct TraceRow {
  CallLine line = CallLine::kCollective;
  int peer = -1;     // of messages
  int channel = -1;  // whose waits; -1: the calls
  friend auto operator<=>(const TraceRow&, const TraceRow&) = default;
};

class Trace {
 public:
  // Null where none is asked for.
  static std::unique_ptr<Trace> of(const Team& team);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Any thread; what there is no memory for is left out.
  // A call that has ended, and that had its turn at `begun`, in ticks. Of the record all that is about the call itself.
  void ended(const CallRecord& call, uint64_t begun) noexcept;
  void waited(const TraceRow& row, int peer, uint64_t from, uint64_t to) noexcept;

 private:
  explicit Trace(const Team& team) : team_(team) {}
  int trackOf(const TraceRow& row);
  std::string nameOf(const TraceRow& row) const;

  const Team& team_;
  std::mutex mutex_;  // guards the next
  std::map<TraceRow, int> tracks_;
};

// The waits of one call's lanes, while it runs. One thread at a time.
class LaneWaits {
 public:
  LaneWaits(Trace& trace, const Call& call, size_t lanes);
  // After each look at that lane: the rank that it waits for, -1 for none, and what changes when it goes on.
  void look(size_t channel, int peer, uint64_t position) noexcept;

 private:
  struct Wait {
    int peer = -1;
    uint64_t position = 0, since = 0;
  };
  Trace& trace_;
  TraceRow row_;
  std::vector<Wait> open_;
};

}  // namespace tutti::comm
