// A rank is killed at a random moment while a communicator grows, one of it or one that joins: what the others are
// told, whether the old communicator stays usable, and whether it grows at the next attempt.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>

#include "faults/support/options.h"
#include "faults/support/process.h"

namespace {

using namespace tutti::faults;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kUsage =
    R"(usage: tutti_grow [--transports LIST] [--moments N] [--seed S] [--verbose] [--short]
Starts 1 to 4 processes that are ranks of a communicator, and 1 to 3 that join them, and kills one of all.
  --transports  of shm,tcp (both)
  --moments     for each transport (100)
  --seed        of the first moment; moment k uses seed + k
  --verbose     a line for each moment
  --short       the form that the tests use: 5 moments each)";

// ---- A rank -------------------------------------------------------------------------------------------------------

//   harness -> rank  rise                  nothing but say that the process has started: answered with ready
//                    old HEX RANK SIZE     join the old communicator: answered with ready
//                    make                  an id for growing: answered with id HEX
//                    grow HEX|- RANK SIZE  answered with grown | later TEXT | failed CODE TEXT
//                    check                 use the old communicator: answered with fine | failed CODE TEXT
//                    end
class GrowingRank {
 public:
  explicit GrowingRank(const std::string& transports) : wire_(wireToHarness()), transports_(transports) {
    config_.transports = transports_.c_str();
    // What the others wait where one who joins is killed before it has reached anyone.
    config_.joinTimeoutMs = static_cast<int>(3'000 * patience());
    config_.operationTimeoutMs = static_cast<int>(10'000 * patience());
  }
  int run() {
    while (obey()) {
    }
    for (const tuttiComm_t comm : made_) tuttiCommDestroy(comm);
    tuttiCommDestroy(old_);
    return 0;
  }

 private:
  void failed(tuttiResult_t result) const {
    wire_.send(fmt::format("failed {} {}", static_cast<int>(result), tuttiGetLastError(nullptr)));
  }
  static tuttiResult_t use(tuttiComm_t comm) {
    int size = 0, sum = 1;
    tuttiResult_t result = tuttiCommCount(comm, &size);
    if (result == tuttiSuccess) result = tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr);
    return result == tuttiSuccess && sum != size ? tuttiInternalError : result;
  }
  bool obey() {
    std::istringstream order(wire_.receive(seconds(60 * patience())));
    std::string verb, id;
    int rank = 0, size = 0;
    order >> verb;
    if (verb == "root") return id_ = {}, tuttiGetUniqueId(&id_), wire_.send("id " + encodeId(id_)), true;
    if (verb == "rise") return wire_.send("ready"), true;
    if (verb == "old") {
      order >> id >> rank >> size;
      const auto result = tuttiCommInitRankConfig(&old_, size, decodeId(id), rank, &config_);
      return result == tuttiSuccess ? wire_.send("ready") : failed(result), true;
    }
    if (verb == "make") {
      const auto result = tuttiCommGetUniqueId(old_, &id_);
      return result == tuttiSuccess ? wire_.send("id " + encodeId(id_)) : failed(result), true;
    }
    if (verb == "check") {
      const auto result = use(old_);
      return result == tuttiSuccess ? wire_.send("fine") : failed(result), true;
    }
    if (verb != "grow") return false;
    order >> id >> rank >> size;
    grow(id, rank, size);
    return true;
  }
  void grow(const std::string& id, int rank, int size) {
    if (id != "-") id_ = decodeId(id);
    tuttiComm_t child = nullptr;
    const auto result =
        tuttiCommGrow(old_, size, id == "-" ? nullptr : &id_, old_ ? -1 : rank, &child, old_ ? nullptr : &config_);
    if (result != tuttiSuccess) return failed(result);
    made_.push_back(child);
    const auto later = use(child);
    wire_.send(later == tuttiSuccess ? "grown" : std::string("later ") + tuttiGetLastError(child));
  }

  Wire wire_;
  std::string transports_;
  tuttiConfig_t config_ = TUTTI_CONFIG_INITIALIZER;
  tuttiUniqueId id_{};
  tuttiComm_t old_ = nullptr;
  std::vector<tuttiComm_t> made_;
};

// ---- The harness --------------------------------------------------------------------------------------------------

class GrowingMoment {
 public:
  GrowingMoment(const std::string& transports, uint64_t seed, const Scratch& scratch)
      : transports_(transports), seed_(seed), random_(seed * 77 + 5) {
    old_ = 1 + draw(4);
    all_ = old_ + 1 + draw(3);
    maker_ = draw(old_);
    victim_ = draw(all_);
    for (int rank = 0; rank < all_; ++rank)
      ranks_.emplace_back(std::vector{transports}, std::vector{"TMPDIR=" + scratch.path()});
  }

  void run() {
    meet();
    if (!faults_.empty()) return;
    order(all_);
    std::this_thread::sleep_for(std::chrono::microseconds(draw(40'000)));
    child(victim_).signal(SIGKILL);
    bool all = true;
    for (int rank = 0; rank < all_; ++rank)
      if (rank != victim_) all = judge(rank) && all;
    if (faults_.empty() && !all && victim_ >= old_) tryAgain();
    finish();
  }
  const std::string& faults() const noexcept { return faults_; }
  std::string describe() const {
    return fmt::format("{} seed {}: {} ranks grow to {}, rank {} made the id, rank {} killed", transports_, seed_, old_,
                       all_, maker_, victim_);
  }

 private:
  int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  Child& child(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  void fault(const std::string& text) { faults_ += "  " + text + "\n"; }
  std::string hear(int rank) {
    const std::string text = child(rank).wire().receive(seconds(25 * static_cast<int64_t>(patience())));
    if (text.empty()) fault(fmt::format("rank {} HANGS, or has ended", rank));
    return text;
  }
  void expect(int rank, const std::string& expected) {
    if (const auto text = hear(rank); !text.empty() && text != expected)
      fault(fmt::format("rank {}: expected {}: {}", rank, expected, text));
  }

  void meet() {
    child(0).wire().send("root");
    const std::string id = hear(0);
    if (id.size() < 4) return;
    for (int rank = 0; rank < old_; ++rank)
      child(rank).wire().send(fmt::format("old {} {} {}", id.substr(3), rank, old_));
    for (int rank = old_; rank < all_; ++rank) child(rank).wire().send("rise");
    for (int rank = 0; rank < all_; ++rank) expect(rank, "ready");
  }

  // `size`: of the new communicator; who joins is numbered without the dead.
  void order(int size) {
    child(maker_).wire().send("make");
    const std::string told = hear(maker_);
    if (told.rfind("id ", 0) != 0) return fault(fmt::format("rank {} makes no id: {}", maker_, told));
    std::vector<int> who;
    for (int rank = 0; rank < all_; ++rank)
      if (size == all_ || rank != victim_) who.push_back(rank);
    for (size_t place = 0; place < who.size(); ++place)
      child(who[place])
          .wire()
          .send(fmt::format("grow {} {} {}", who[place] == maker_ || who[place] >= old_ ? told.substr(3) : "-", place,
                            size));
  }

  // False: it did not come about for this rank.
  bool judge(int rank) {
    const std::string text = hear(rank);
    if (text == "grown" || text.rfind("later ", 0) == 0) return true;
    const bool namesIt = text.find(fmt::format("pid {})", child(victim_).pid())) != std::string::npos;
    // Where the root has gone with the one who made it, who joins knows no more than that.
    const auto speaksOf = [&](const char* what) { return text.find(what) != std::string::npos; };
    const bool noRoot = victim_ == maker_ && rank >= old_ && (speaksOf("root") || speaksOf("left"));
    // Who died before it had reached anyone is missing.
    const bool missing = victim_ >= old_ && text.find(fmt::format("missing: rank {}", victim_)) != std::string::npos;
    if (!namesIt && !noRoot && !missing) fault(fmt::format("rank {} was told: {}", rank, text));
    return false;
  }

  void tryAgain() {
    for (int rank = 0; rank < old_; ++rank) child(rank).wire().send("check");
    for (int rank = 0; rank < old_; ++rank) expect(rank, "fine");
    if (!faults_.empty() || all_ - 1 == old_) return;
    order(all_ - 1);
    for (int rank = 0; rank < all_; ++rank)
      if (rank != victim_) expect(rank, "grown");
  }

  void finish() {
    for (int rank = 0; rank < all_; ++rank)
      if (rank != victim_) child(rank).wire().send("end");
    for (int rank = 0; rank < all_; ++rank)
      if (const auto status = rank == victim_ ? 0 : child(rank).awaitEnd(seconds(25 * patience())); status != 0)
        fault(fmt::format("rank {} ended with {}", rank, status.value_or(-1)));
  }

  std::string transports_;
  uint64_t seed_;
  std::mt19937_64 random_;
  int old_ = 0, all_ = 0, maker_ = 0, victim_ = 0;
  std::vector<Child> ranks_;
  std::string faults_;
};

size_t runGrowingMoments(const std::string& transports, uint64_t moments, uint64_t seed, bool verbose) {
  size_t faulty = 0;
  for (uint64_t i = 0; i < moments; ++i) {
    const Scratch scratch;
    std::string faults, what;
    {
      GrowingMoment moment(transports, seed + i, scratch);
      what = moment.describe();
      moment.run();
      faults = moment.faults();
    }
    for (const auto& file : scratch.left()) faults += "  left behind: " + file + "\n";
    faulty += !faults.empty();
    if (verbose || !faults.empty()) fmt::print("{:<6} {}\n{}", faults.empty() ? "ok" : "FAILED", what, faults);
    std::fflush(stdout);
  }
  fmt::print("{}: {} moments, {} faulty\n", transports, moments, faulty);
  return faulty;
}

}  // namespace

int main(int argc, char** argv) {
  if (std::strcmp(argv[0], "rank") == 0) return argc > 1 ? GrowingRank(argv[1]).run() : 2;
  const Options options(argc, argv, kUsage);
  const uint64_t moments = options.number("moments", options.has("short") ? 5 : 100), seed = options.seed();
  fmt::print("seed {}\n", seed);
  size_t faulty = 0;
  for (const auto& transports : itemsOf(options.text("transports", "shm,tcp")))
    faulty += runGrowingMoments(transports, moments, seed, options.has("verbose"));
  return faulty != 0;
}
