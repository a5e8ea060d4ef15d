#include "faults/kill_rank.h"

#include <fmt/format.h>

#include <sstream>
#include <thread>
#include <utility>

#include "faults/support/options.h"
#include "faults/support/process.h"
#include "faults/support/worker.h"

namespace tutti::faults {
namespace {

using std::chrono::seconds;

constexpr size_t kMostElements = 20'000;  // comparing results must not keep a rank from its next call for long
// A shrink that another death has interrupted is given up for some seconds more, in the background.
constexpr seconds kLinger(15);

class KillRank {
 public:
  KillRank(int rank, uint64_t seed, const std::string& transports)
      : wire_(wireToHarness()), before_(holdings()), draw_(seed, transports), rank_(rank) {
    draw_.limitCounts(kMostElements);
    config_.operationTimeoutMs = static_cast<int>(10'000 * patience());
    config_.joinTimeoutMs = static_cast<int>(20'000 * patience());
  }

  int run() {
    std::vector<tuttiUniqueId> ids(draw_.session().communicators.size());
    if (!meet(ids[0])) return 1;
    Worker worker(draw_.session(), rank_, config_);
    if (const auto trouble = worker.open(ids)) return say("failed " + trouble->text), 1;
    wire_.send("ready");
    int64_t when = 0;
    worker.onAlarm([&] {
      when = now();
      revokeSplits(worker);
    });
    std::optional<Trouble> trouble;
    while (!trouble) trouble = worker.runStep(draw_.step());
    if (trouble->isWrong) return say("wrong " + trouble->text), 1;
    newest_ = worker.members()[0].comm;
    tell(*trouble, when);
    while (obey()) {
    }
    leave(worker);
    const Holdings after = awaitHoldings(before_, kLinger * patience());
    say(fmt::format("held {} {} {} {} {}", before_.descriptors, after.descriptors, before_.threads, after.threads,
                    after.descriptors > before_.descriptors ? descriptorNames() : ""));
    return 0;
  }

 private:
  void say(const std::string& text) const { wire_.send(text); }
  std::string hear() const { return wire_.receive(seconds(60 * patience())); }

  bool meet(tuttiUniqueId& id) const {
    if (rank_ == 0) {
      if (tuttiGetUniqueId(&id) != tuttiSuccess) return say(std::string("failed ") + tuttiGetLastError(nullptr)), false;
      say("id " + encodeId(id));
    }
    const std::string answer = hear();
    if (answer.size() > 3) id = decodeId(answer.substr(3));
    return answer.size() > 3;
  }

  // A split without the rank that is gone works on, but not all its ranks will: whoever knows stops it.
  static void revokeSplits(Worker& worker) {
    for (size_t i = 1; i < worker.members().size(); ++i)
      if (worker.members()[i].comm) tuttiCommRevoke(worker.members()[i].comm, 0);
  }

  // The world must come to know too, whichever communicator the call was on. Until it does, a call of this rank alone
  // would be a mismatch; from then on every call fails.
  void tell(const Trouble& trouble, int64_t when) const {
    tuttiResult_t result = tuttiSuccess;
    const int64_t until = now() + kLinger * patience() / std::chrono::nanoseconds(1);
    while (result == tuttiSuccess && now() < until) {
      tuttiCommGetAsyncError(newest_, &result);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    result = tuttiBarrier(newest_, nullptr);
    const int64_t later = now();
    say(fmt::format("known {} {} {} {}\n{}\n{}", when, static_cast<int>(trouble.result), later,
                    static_cast<int>(result), trouble.text, tuttiGetLastError(newest_)));
  }

  bool obey() {
    std::istringstream order(hear());
    std::string verb, id;
    order >> verb;
    if (verb == "shrink") {
      std::vector<int> leftOut;
      for (int rank = 0; order >> rank;) leftOut.push_back(rank);
      tuttiComm_t child = nullptr;
      const int count = static_cast<int>(leftOut.size());
      const tuttiResult_t result = tuttiCommShrink(newest_, leftOut.data(), count, &child, nullptr, 0);
      recovered(result, child);
    } else if (verb == "make") {
      tuttiUniqueId made;
      say(tuttiGetUniqueId(&made) == tuttiSuccess ? "id " + encodeId(made) : std::string("failed to make an id"));
    } else if (verb == "join") {
      int rank = 0, size = 0;
      order >> id >> rank >> size;
      tuttiComm_t child = nullptr;
      const tuttiResult_t result = tuttiCommInitRankConfig(&child, size, decodeId(id), rank, &config_);
      recovered(result, child);
    } else {
      return false;
    }
    return true;
  }

  void recovered(tuttiResult_t result, tuttiComm_t child) {
    if (result != tuttiSuccess) return say(std::string("failed ") + tuttiGetLastError(nullptr));
    made_.push_back(newest_ = child);
    int rank = 0, size = 0;
    tuttiCommUserRank(child, &rank);
    tuttiCommCount(child, &size);
    Operation operation;
    operation.count = 10'007;
    operation.type = tuttiInt64;
    Part part(operation, rank, size);
    if (part.issue(child, nullptr) != tuttiSuccess) return say(std::string("failed ") + tuttiGetLastError(child));
    const std::string wrong = part.check();
    say(wrong.empty() ? fmt::format("recovered {} {}", rank, size) : "wrong " + wrong);
  }

  // Some destroy, some abort: both must leave nothing behind.
  void leave(Worker& worker) {
    for (const tuttiComm_t comm : made_) tuttiCommDestroy(comm);
    if (rank_ % 2 == 1)
      for (auto& member : worker.members())
        if (member.comm) tuttiCommAbort(std::exchange(member.comm, nullptr));
    worker.close();
  }

  Wire wire_;
  Holdings before_;
  Draw draw_;
  int rank_;
  tuttiConfig_t config_ = TUTTI_CONFIG_INITIALIZER;
  tuttiComm_t newest_ = nullptr;
  std::vector<tuttiComm_t> made_;
};

}  // namespace

int runKillRank(int argc, char** argv) {
  if (argc < 4) return 2;
  return KillRank(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10), argv[3]).run();
}

}  // namespace tutti::faults
