// The root of a job: tells each rank its parent in the tree, and everyone when the joining fails.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "job/root_name.h"
#include "process/background_threads.h"
#include "wire/heartbeat.h"
#include "wire/listener.h"

namespace tutti::control {

// Where the ranks of a job meet, when not at any free port of a random job number.
struct RootPlace {
  UniqueId id;        // secret and job number; the addresses are filled in
  uint16_t port = 0;  // 0: any
  bool tcp = true;
  std::string doubt;  // why nobody may come: told when nobody does
};

class Root;

// A root listens; who calls is answered from here on, and it keeps itself alive until it is done; halt() ends it early.
// Throws Error.
void start(const std::shared_ptr<Root>& root);
std::shared_ptr<Root> startRoot(const RootPlace& place, const Network& network, Deadline lifetime);
RootPlace anyRootPlace();
UniqueId openRootAt(const RootPlace& place, const Network& network, Deadline lifetime);
// What both ends of a connection to the root prove. The root itself encrypts as its callers do.
HandshakeContext rootContext(const UniqueId& id);

class Root : public Service {
 public:
  Root(const RootPlace& place, const Network& network, Deadline lifetime);
  ~Root() override;
  void run() override;
  void hurry() override;
  void halt() override;
  // Any thread, both: whether this job will not start, and whether somebody may be on his way who has yet to hear it.
  bool hasRefused() const noexcept;
  bool tellsStill() const noexcept;
  const UniqueId& id() const noexcept { return id_; }
  // Any thread. That rank, of `size`, will not come; 0: how many there are is not known.
  void giveUp(int rank, int size, const std::string& why);

 private:
  struct PendingRank {
    RankAddress who;
    Digest record;               // of what it gives to the table
    std::shared_ptr<Line> line;  // until it has the table
    bool encrypts = false, placed = false, done = false;
  };

  Listener::Request listenRequest(const RootPlace& place, const Network& network) const;
  void welcome(const std::shared_ptr<Line>& line, Frame& first);
  std::optional<Refusal> objectionTo(const Hello& hello, bool encrypts) const;
  std::string differenceFrom(const Hello& hello) const;
  std::string differenceOfSecrets(const Hello& hello) const;
  void seat(const std::shared_ptr<Line>& line, Hello hello);
  void place(int rank);
  void tellDigest();
  void onFrame(int rank, Frame& frame);
  void onGone(int rank, const std::string& why);
  void onSilence(int rank, const std::string& how);
  void onDeadline(int rank, int64_t afterMs);
  std::vector<int> missing() const;
  void account(int rank);
  bool awaitsAnybody() const noexcept;
  std::string suspicion() const;
  std::string ownProcess() const;
  // Tells everyone who came, and whoever still comes, that this job will not start.
  void refuse(ErrorCode code, const std::string& text);
  void tell(const std::shared_ptr<Line>& line, const Refusal& refusal) noexcept;
  void tellLate(const std::shared_ptr<Line>& line, int rank);
  void endIfIdle() noexcept;

  Reactor reactor_;
  RootName name_;
  Listener listener_;
  UniqueId id_;
  std::string doubt_;
  const uint64_t draw_ = randomNumber();
  Secret drawn_{};                      // for those whom the id gives none; zero: it has one
  std::optional<Heartbeat> heartbeat_;  // as the first rank wants it
  int size_ = 0;                        // not known before the first rank has come
  std::map<int, PendingRank> pendingRanks_;
  Hello first_;  // of the one that came first
  int placed_ = 0, done_ = 0, parting_ = 0;
  std::optional<Refusal> refused_;
  std::atomic<int64_t> tellsUntil_{0};  // a moment of the deadlines' clock; 0: it has not refused
  size_t heard_ = 0;                    // how many know why
  bool knowsWhoComes_ = true;
  bool givenUp_ = false;     // for a rank that said so without a line
  std::set<int> accounted_;  // then: who came since, or said the same
  UniqueFd reserve_;         // given up for those who have yet to hear of a refusal, where there is no other descriptor
};

}  // namespace tutti::control
