// A rank of a job is killed, or stopped, at a random moment: what the others are told, how soon, whether they can go
// on without it, and what is left behind.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>

#include "faults/kill_rank.h"
#include "faults/support/draw.h"
#include "faults/support/options.h"
#include "faults/support/process.h"

namespace {

using namespace tutti::faults;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kUsage =
    R"(usage: tutti_kill [--transports LIST] [--signal kill|stop|both] [--moments N] [--seed S] [--verbose] [--short]
Starts jobs of 2 to 8 processes that run drawn operations, and strikes a rank at a random moment. p2p joins the threads
of one process, which die together: nothing can be killed there.
  --transports  of shm,tcp (both)
  --signal      kill; stop: SIGSTOP with TUTTI_HEARTBEAT_MS=700, both (both)
  --moments     for each transport and signal (200)
  --seed        of the first moment; moment k uses seed + k
  --verbose     a line for each moment
  --short       the form that the tests use: 4 moments each)";

// Eight ranks on a few cores let each other wait.
int heartbeatMs() { return 700 * static_cast<int>(patience()); }

struct Manner {
  std::string transports;
  bool stops = false;  // SIGSTOP; else SIGKILL
};

// One job, one moment.
class Moment {
 public:
  Moment(const Manner& manner, uint64_t seed, const Scratch& scratch)
      : manner_(manner), seed_(seed), random_(mix(seed, 0x4b11)), session_(Draw(seed, manner.transports).session()) {
    std::vector<std::string> environment{"TMPDIR=" + scratch.path()};
    if (manner.stops) environment.push_back(fmt::format("TUTTI_HEARTBEAT_MS={}", heartbeatMs()));
    for (int rank = 0; rank < session_.ranks; ++rank)
      ranks_.emplace_back(std::vector{std::to_string(rank), std::to_string(seed), manner.transports}, environment);
    victim_ = static_cast<int>(random_() % ranks_.size());
    shrinks_ = random_() % 2 == 0;
    // With three ranks or more a second one dies while the others shrink.
    if (shrinks_ && session_.ranks > 2 && random_() % 3 == 0)
      second_ = (victim_ + 1 + static_cast<int>(random_() % (ranks_.size() - 1))) % session_.ranks;
    // Or they name whom they leave out, with four or more also one that lives.
    if (shrinks_ && second_ < 0 && random_() % 2 == 0) {
      leftOut_ = fmt::format(" {}", victim_);
      if (session_.ranks > 3) outcast_ = (victim_ + 1 + static_cast<int>(random_() % 3)) % session_.ranks;
      if (outcast_ >= 0) leftOut_ += fmt::format(" {}", outcast_);
    }
  }

  void run() {
    if (!begin()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 250'000));
    struck_ = now();
    child(victim_).signal(manner_.stops ? SIGSTOP : SIGKILL);
    for (int rank : survivors()) awaitKnowledge(rank);
    if (!faults_.empty()) return;
    if (shrinks_)
      shrink();
    else
      joinAgain();
    if (!faults_.empty()) return;
    if (manner_.stops) wakeVictim();
    finish();
  }

  const std::string& faults() const noexcept { return faults_; }
  const std::vector<double>& delays() const noexcept { return delays_; }
  std::string describe() const {
    return fmt::format("{} {} seed {}: {} ranks, rank {} {}, then {}{}", manner_.transports,
                       manner_.stops ? "stop" : "kill", seed_, session_.ranks, victim_,
                       manner_.stops ? "stopped" : "killed", shrinks_ ? "shrink" : "a new communicator",
                       second_ >= 0       ? fmt::format(" with a second death, of rank {}", second_)
                       : leftOut_.empty() ? ""
                                          : " without ranks" + leftOut_);
  }

 private:
  Child& child(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  static milliseconds limit() { return seconds(25 * static_cast<int64_t>(patience())); }
  void fault(const std::string& text) { faults_ += "  " + text + "\n"; }

  std::vector<int> survivors() const {
    std::vector<int> list;
    for (int rank = 0; rank < session_.ranks; ++rank)
      if (rank != victim_ && rank != dead_) list.push_back(rank);
    return list;
  }

  std::vector<int> stayers() const {
    std::vector<int> list = survivors();
    std::erase(list, outcast_);
    return list;
  }

  std::string hear(int rank, const std::string& expected) {
    const std::string text = child(rank).wire().receive(limit());
    if (text.rfind(expected, 0) == 0) return text;
    fault(fmt::format("rank {}: expected \"{}\", {}", rank, expected,
                      !text.empty()              ? "said " + text
                      : child(rank).awaitEnd({}) ? fmt::format("ended with status {}", *child(rank).status())
                                                 : "HANGS"));
    return "";
  }

  bool begin() {
    const std::string id = hear(0, "id ");
    for (const Child& rank : ranks_) rank.wire().send(id);
    for (int rank = 0; rank < session_.ranks; ++rank) hear(rank, "ready");
    return faults_.empty();
  }

  void awaitKnowledge(int rank) {
    const std::string text = hear(rank, "known ");
    if (text.empty()) return;
    std::istringstream in(text.substr(6));
    int64_t first = 0, later = 0;
    int code = 0, laterCode = 0;
    std::string line, onCall, onWorld;
    in >> first >> code >> later >> laterCode;
    std::getline(in, line);
    std::getline(in, onCall);
    std::getline(in, onWorld);
    delays_.push_back(static_cast<double>(first - struck_) / 1e6);
    const std::string pid = fmt::format("pid {})", child(victim_).pid());
    const std::string name = fmt::format("rank {} (host ", victim_);
    if (code != tuttiRemoteError || laterCode != tuttiRemoteError)
      fault(fmt::format("rank {}: the call ended with {}: {}; a barrier then with {}: {}", rank, code, onCall,
                        laterCode, onWorld));
    const bool revoked = onCall.find(" revoked ") != std::string::npos;
    if ((onCall.find(pid) == std::string::npos && !revoked) || onWorld.find(pid) == std::string::npos ||
        onWorld.find(name) == std::string::npos)
      fault(fmt::format("rank {} was not told of \"{}..., {}\": by its call: {}; by a barrier: {}", rank, name, pid,
                        onCall, onWorld));
  }

  void judgeRecovery(int rank, const std::string& text, int place, int size) {
    if (text != fmt::format("recovered {} {}", place, size))
      fault(fmt::format("rank {}: expected to be {} of {}: {}", rank, place, size, text.empty() ? "HANGS" : text));
  }

  // A second death during it may make an attempt fail, on some ranks or on all; they try again then.
  void shrink() {
    for (int attempt = 0; attempt < 4; ++attempt) {
      for (int rank : stayers()) child(rank).wire().send("shrink" + leftOut_);
      if (second_ >= 0 && dead_ < 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 8'000));
        dead_ = second_;
        child(dead_).signal(SIGKILL);
      }
      std::vector<std::string> answers;
      for (int rank : stayers()) answers.push_back(child(rank).wire().receive(limit()));
      const auto isFailed = [](const std::string& text) { return text.rfind("failed", 0) == 0; };
      const bool again = dead_ >= 0 && attempt < 3 && std::any_of(answers.begin(), answers.end(), isFailed);
      if (again) continue;
      return judgeShrink(answers);
    }
  }

  // The new communicator may still have counted the second victim, which then died after it was made.
  void judgeShrink(const std::vector<std::string>& answers) {
    const std::vector<int> alive = stayers();
    for (size_t i = 0; i < alive.size(); ++i) {
      const bool counted = dead_ >= 0 && answers[i].ends_with(fmt::format(" {}", alive.size() + 1));
      if (!counted || answers[i].rfind("recovered ", 0) != 0)
        judgeRecovery(alive[i], answers[i], static_cast<int>(i), static_cast<int>(alive.size()));
    }
  }

  void joinAgain() {
    const std::vector<int> alive = survivors();
    child(alive[0]).wire().send("make");
    std::string id = hear(alive[0], "id ");
    if (id.empty()) return;
    for (size_t i = 0; i < alive.size(); ++i)
      child(alive[i]).wire().send(fmt::format("join {} {} {}", id.substr(3), i, alive.size()));
    for (size_t i = 0; i < alive.size(); ++i)
      judgeRecovery(alive[i], child(alive[i]).wire().receive(limit()), static_cast<int>(i),
                    static_cast<int>(alive.size()));
  }

  // Whoever was given up for gone and wakes up again must learn that it is out.
  void wakeVictim() {
    child(victim_).signal(SIGCONT);
    const std::string text = hear(victim_, "known ");
    std::istringstream in(text.size() > 6 ? text.substr(6) : "");
    int64_t when = 0;
    int code = 0;
    in >> when >> code;
    if (!text.empty() && code != tuttiRemoteError) fault(fmt::format("the stopped rank was told {}", text));
  }

  void leave(int rank) {
    const std::string text = hear(rank, "held ");
    std::istringstream in(text.size() > 5 ? text.substr(5) : "");
    int before = 0, after = 0, threadsBefore = 0, threadsAfter = 0;
    in >> before >> after >> threadsBefore >> threadsAfter;
    if (after > before || threadsAfter > threadsBefore) fault(fmt::format("rank {} keeps something: {}", rank, text));
    if (const auto status = child(rank).awaitEnd(limit()); status != 0)
      fault(fmt::format("rank {} ended with {}", rank, status.value_or(-1)));
  }

  void finish() {
    std::vector<int> all = survivors();
    if (manner_.stops) all.push_back(victim_);
    // A rank that has left serves those below it until they leave too: all are told before any is looked at. This holds
    // for the stopped rank as well: a split that was revoked before anyone missed it there still has it.
    for (int rank : all) child(rank).wire().send("end");
    for (int rank : all) leave(rank);
  }

  Manner manner_;
  uint64_t seed_;
  std::mt19937_64 random_;
  SessionSpec session_;
  std::vector<Child> ranks_;
  int victim_ = 0, second_ = -1, dead_ = -1, outcast_ = -1;
  std::string leftOut_;
  bool shrinks_ = true;
  int64_t struck_ = 0;
  std::vector<double> delays_;
  std::string faults_;
};

// Returns how many moments were faulty.
size_t runMoments(const Manner& manner, uint64_t moments, uint64_t seed, bool verbose) {
  size_t faulty = 0;
  std::vector<double> delays;
  for (uint64_t i = 0; i < moments; ++i) {
    const Scratch scratch;
    std::string faults, what;
    {
      Moment moment(manner, seed + i, scratch);
      what = moment.describe();
      moment.run();
      faults = moment.faults();
      delays.insert(delays.end(), moment.delays().begin(), moment.delays().end());
    }
    for (const auto& file : scratch.left()) faults += "  left behind: " + file + "\n";
    faulty += !faults.empty();
    if (verbose || !faults.empty()) fmt::print("{:<6} {}\n{}", faults.empty() ? "ok" : "FAILED", what, faults);
    std::fflush(stdout);
  }
  std::sort(delays.begin(), delays.end());
  const double promise = manner.stops ? heartbeatMs() + 1000 : 1000;
  const double most = delays.empty() ? 0 : delays.back();
  const auto late = std::count_if(delays.begin(), delays.end(), [&](double delay) { return delay > promise; });
  fmt::print("{} {}: {} moments, {} faulty; {} survivors knew after {:.1f} ms (median), {:.1f} ms (maximum){}\n",
             manner.transports, manner.stops ? "SIGSTOP" : "SIGKILL", moments, faulty, delays.size(),
             delays.empty() ? 0 : delays[delays.size() / 2], most,
             late > 0 ? fmt::format("  !! {} later than the promised {} ms", late, promise) : "");
  std::fflush(stdout);
  return faulty;
}

}  // namespace

int main(int argc, char** argv) {
  if (std::strcmp(argv[0], "rank") == 0) return runKillRank(argc, argv);
  const Options options(argc, argv, kUsage);
  const uint64_t moments = options.number("moments", options.has("short") ? 4 : 200);
  const uint64_t seed = options.seed();
  const std::string signals = options.text("signal", "both");
  fmt::print("seed {}\n", seed);
  size_t faulty = 0;
  for (const auto& transports : itemsOf(options.text("transports", "shm,tcp")))
    for (const bool stops : {false, true})
      if (signals == "both" || (signals == "stop") == stops)
        faulty += runMoments({transports, stops}, moments, seed, options.has("verbose"));
  return faulty != 0;
}
