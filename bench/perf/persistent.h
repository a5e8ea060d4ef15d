// One rank's calls of a line, made ready once and started again and again (--persistent 1).
#pragma once
#include <array>
#include <utility>
#include <vector>

#include "perf/collective.h"

namespace tutti::perf {

class PersistentCalls {
 public:
  // `queued`: a start returns before the call has run, which has to have ended before it is started again.
  explicit PersistentCalls(bool queued) : queued_(queued) {}
  ~PersistentCalls();
  PersistentCalls(PersistentCalls&& other) noexcept : queued_(other.queued_), calls_(std::exchange(other.calls_, {})) {}
  PersistentCalls& operator=(PersistentCalls&&) = delete;

  // Makes one more ready: as a call, also in a group.
  tuttiResult_t make(const Collective& collective, Call call);
  // Runs that of this number; they go round.
  tuttiResult_t start(size_t number) const;

 private:
  tuttiResult_t startOne(tuttiRequest_t request) const;

  bool queued_;
  using Requests = std::array<tuttiRequest_t, 2>;  // of a message both ways two, else one
  std::vector<Requests> calls_;
};

}  // namespace tutti::perf
