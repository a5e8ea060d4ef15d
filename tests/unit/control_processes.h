// Ranks of a control plane as processes of their own, which tests may stop and kill.
#pragma once
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <string>

#include "control_ranks.h"
#include "support/sanitized.h"

namespace tutti::control::test {

using Clock = std::chrono::steady_clock;
inline double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Where somebody is to be found silent. Not shorter: a busy machine lets a thread that is well wait, too.
inline constexpr std::chrono::milliseconds kHeartbeat(kSanitized ? 2500 : 700);

// What the process does: "dooms": has the root, and ends since rank `rank`, here as well, could not begin to join, for
// the reason `expect`; "hoards": has the root and not one descriptor more, for ever; "crowded": the same, but for one,
// and the root listens at the id's port too. These three stop when they have come so far, until they are told to go on.
// "fails": has no interface to listen at, and ends. "leave" after joining; "vanish": the same, and the process ends at
// once; "wait" for ever; "shrink" after every failure; "witness": waits for a failure and exits with 0 when its text
// contains `expect`; "outcast": the same, and then finds that it cannot shrink; "claims": has `expect` for its card,
// takes part in one exchange, and waits for a failure.
struct Process {
  UniqueId id;
  int rank = 0, size = 1;
  std::string mode = "wait";
  int heartbeatMs = 20000;
  std::string expect;
};
// A process that stays sends everyone a mail under this key when it has joined: the others may well know before it that
// all are there, and who stops it then stops it while it joins.
inline constexpr uint64_t kReadyKey = 5;

// This program again, running only the test OtherProcess.
pid_t startRank(const Process& process);
inline pid_t startRank(const UniqueId& id, int rank, int size, const char* mode) {
  return startRank({id, rank, size, mode, 20000, {}});
}

inline int exitOf(pid_t pid) {
  int status = -1;
  ::waitpid(pid, &status, 0);
  return status;
}

}  // namespace tutti::control::test
