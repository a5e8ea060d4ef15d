// One thread's ranks, and what a thread does with them: calls, waits, timed loops and checks.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perf/buffer.h"
#include "perf/check.h"
#include "perf/collective.h"
#include "perf/device.h"
#include "perf/inputs.h"
#include "perf/join.h"
#include "perf/options.h"
#include "perf/persistent.h"
#include "perf/table.h"

namespace tutti::perf {

// What one line of the table is about.
struct Job {
  tuttiDataType_t type;
  Operator op;
  int root;
  size_t bytes;  // asked for; the line shows what remains after dividing it among the ranks
};

// One rank.
struct Member {
  tuttiComm_t comm = nullptr, control = nullptr;  // as in Seat
  int rank = 0;
  int device = -1;  // its GPU; -1: host memory
  tuttiStream_t stream = nullptr;
  std::unique_ptr<Buffer> send, receive;
  std::unique_ptr<Inputs> inputs;
  std::optional<PersistentCalls> ready;  // the calls of the line, while it is timed with --persistent
  std::optional<tuttiRedOp_t> mulSum;    // pre-mul-sum with this rank's factor, for the present type
  tuttiRedOp_t op = tuttiSum;            // the present one
};

// One half of a line, and what need not be worked out while it is timed.
struct Half {
  Job job;
  bool inPlace;
  Layout layout;
  size_t element;  // bytes
  size_t bytes;    // of one operation's part of a buffer
  size_t parts;    // of a buffer: operations use them in turn
};

class Worker {
 public:
  // Takes the communicators over: they end with leave() or abort().
  Worker(const Collective& collective, const Options& options, const std::vector<Seat>& seats);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int ranks() const { return ranks_; }

  // Asks who the members are, and makes their buffers. The other functions throw Failure as well.
  void prepare();
  // Prepares type and operator. Collective, as all that follows.
  void select(tuttiDataType_t type, Operator op);
  // Runs the warm-up iterations at one size.
  void warmUp(const Job& job);
  // Runs one half of a line.
  Measurement measure(const Job& job, bool inPlace);
  // The line's size and count.
  std::pair<size_t, size_t> shownSize(const Job& job) const;
  // Every rank's `record`, in the order of the ranks. `ofMember` makes it. Of the same size on every rank.
  std::vector<std::string> gather(size_t recordBytes, const std::function<std::string(const Member&)>& ofMember);
  // Leaves the communicators in good order.
  void leave();
  // Stops everybody, after an error. Never throws.
  void abort() noexcept;

 private:
  struct Timing {
    double seconds = 0;
    std::vector<double> iterations;  // seconds
  };

  Layout layoutOf(const Job& job) const;
  Place placeOf(const Member& member, const Job& job) const;
  Half halfOf(const Job& job, bool inPlace) const;
  // Calls `run` for each member's control communicator, in a group where there are several.
  void forEach(const char* call, const std::function<tuttiResult_t(Member&)>& run);
  void barrier();
  void makeStream(Member& member) const;
  void dropStream(Member& member) const;
  void wait();
  void waitFor(const Member& member) const;
  Call callOf(const Member& member, const Half& half, size_t shift) const;
  void runOnce(const Member& member, const Half& half, size_t shift) const;
  void iterate(const Half& half, int iteration);
  void makeReady(const Half& half);
  Timing runTimed(const Job& job, bool inPlace);
  Timing runGraph(const Job& job, bool inPlace);
  // One value a member; the result over all ranks.
  double agree(std::vector<double> values, tuttiRedOp_t op);
  double averaged(double seconds);
  std::vector<double> slowest(std::vector<double> seconds);
  void noteUse(const Layout& layout, Measurement& measurement) const;
  int64_t check(const Job& job, bool inPlace);
  int64_t checkOnce(const Half& half);

  const Collective& collective_;
  const Options& options_;
  int ranks_ = 0;
  std::vector<Member> members_;
  uint64_t checkNumber_ = 0;  // the same on every rank: seeds the inputs
};

}  // namespace tutti::perf
