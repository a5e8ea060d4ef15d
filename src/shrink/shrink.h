// One rank's part in Plane::shrink(): the survivors of a plane find each other, agree on who they are, and join a new
// plane. Lives on the plane's thread, like everything of the old plane, and outlives the call.
//
// Who leads. Each survivor calls the listener of rank 0, then 1, ... until one answers; that one leads, and those whom
// it can find nobody below lead themselves. A call (kShrinkCall) may come long before the callee's owner has called
// shrink(): it is kept, and the caller waits. The leader looks after those who have not called by calling their
// listeners now and then (kShrinkProbe): a rank whose listener has gone is gone; one that was silent for a heartbeat
// is given up for good, and is told so should it ever call.
//
// Agreement. When all who are not gone have called, the leader opens a root and proposes a plane of them (kShrinkTry).
// Each joins it and says how that went (kShrinkTried). One that fails, or a line that closes, and the leader tells all
// to drop it (kShrinkAgain) and looks anew at who is there. When all have joined, it says so (kShrinkCommit).
//
// Doubt. When the leader goes after a rank has joined but before it is told to commit, others may have been told. Such
// a rank keeps the new plane while it looks for the next leader. Nobody proposes another one before every rank has
// called or is gone; a rank that has committed does not call, but answers the next leader's probe with what it has
// committed to, and that is then passed on to all. So that it can be asked, it stays a while after its owner has left
// when it has not heard from the leader that all know (kShrinkDone).
//
// Given up. A rank whose owner gives its call up, and stays, says so (kShrinkGaveUp) over its lines: the call ends for
// all who wait at it, or where it waits. One whose owner leaves hangs up, and is gone.
//
// Left out. A survivor may name ranks that are to stay behind though they are alive: they are neither called nor waited
// for, and cannot lead; should they call, they are told. All must name the same: a call and a probe say whom, as a
// digest. Who sees two that differ ends that round of calls for all (kShrinkDiffer): its callers and its leader hear it
// over their lines, the others are called for it. A rank that was not in a call finds it when it makes the one that was
// missing. Rounds are counted, so that nobody hears of one twice, or in the next one.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "join/root.h"
#include "shrink/shrink_call.h"
#include "shrink/shrink_home.h"
#include "wire/heartbeat.h"
#include "wire/prober.h"

namespace tutti::control {

class Shrink {
 public:
  Shrink(ShrinkHome& home, Reactor& reactor, Heartbeat& heartbeat)
      : home_(home), reactor_(reactor), heartbeat_(heartbeat) {}

  // Any thread. Blocks until it is decided; throws what Plane::shrink() throws. `leftOut`: other ranks than this one.
  std::shared_ptr<NewPlane> call(const JoinRequest& like, std::span<const int> leftOut,
                                 const std::function<bool()>& cancelled);
  // The plane's thread has ended: whoever waits, or still comes, gets this.
  void close(ErrorCode code, std::string_view text) noexcept;

  // --- the plane's thread ---
  // A caller at the listener, with kShrinkCall or kShrinkProbe. Throws Error(kRemote) for bytes that are no such thing.
  void arrived(const std::shared_ptr<Line>& line, const Frame& first);
  // The rank is taken for gone from now on; the own rank: by the others.
  void giveUp(int rank, const std::string& why);
  // The owner's fail(): ends its shrink() and, where the owner stays, that of those who wait for it.
  void interrupt(const Failure& failure);
  // The owner has left; `left` is called, by settle(), when nobody can have to ask this rank any more.
  void leave(std::function<void()> left);
  void settle();
  // The process is ending.
  void hurry();

 private:
  using Text = const std::string&;
  struct Call {
    JoinRequest like;
    std::set<int> leftOut;
    Reactor::Token deadline = 0;
  };
  // A new plane, proposed or joined.
  struct Trial {
    ShrinkTry proposal;
    std::shared_ptr<NewPlane> plane;
    bool joined = false;
  };
  struct Caller {
    std::shared_ptr<Line> line;
    ShrinkCall call;
    bool joined = false;
  };
  // A caller that was told what was committed to, and may still have to say that it knows.
  struct Informed {
    std::shared_ptr<Line> line;
    bool knows = false;
  };
  struct Probe {
    std::unique_ptr<Prober> reach;
    std::shared_ptr<Line> line;
  };

  // shrink.cc: the call and its end
  uint64_t serial() const noexcept { return committed_.size(); }
  bool leads() const noexcept;
  std::chrono::milliseconds patience() const noexcept;
  std::unique_ptr<Prober> reach(int rank, Prober::Won won, std::function<void(Text)> gone);
  bool isCancelled(const std::function<bool()>& asked);
  void begin(JoinRequest&& like, std::set<int>&& leftOut);
  void end(ErrorCode code, std::string_view text);
  void tellOwner(ErrorCode code, std::string_view text);
  void tellGivenUp(Text why);
  void stopCall();
  void onDeadline();
  std::string tooLate() const;
  void commit(uint64_t job);
  // shrink_follow.cc: looking for the leader, and what it says
  void seek();
  void callLeader(int rank);
  void lookAhead();
  void found(std::shared_ptr<Line> line);
  void onLeader(Frame& frame);
  void leaderGone();
  void startTrial(ShrinkTry proposal);
  void tried(const ShrinkTried& how);
  void drop(std::optional<Trial>& trial);
  // shrink_lead.cc: being called, and leading
  void keepAlone(int rank, const std::shared_ptr<Line>& line);
  void tellLast(int rank, const std::shared_ptr<Line>& line, Kind kind, Bytes payload);
  void keepCaller(const std::shared_ptr<Line>& line, const ShrinkCall& call);
  void onCaller(int rank, Frame& frame);
  void onGivenUp(int rank, Text why);
  void callerGone(int rank);
  std::string waitText() const;
  std::vector<int> missing() const;
  void leadOn();
  void propose();
  void tellProposal(ShrinkTry proposal);
  void noteTried(int rank, const ShrinkTried& how);
  void again();
  void probe();
  void probeOne(int rank);
  void onProbed(int rank, Frame& frame);
  void tellCallers(Kind kind, const Bytes& payload);
  void endAll(ErrorCode code, Text text, int whose = -1);
  // shrink_differ.cc: whom all leave out, and where they differ in it
  bool leavesOut(int rank) const { return call_ && call_->leftOut.contains(rank); }
  static std::string leftOutText(int rank);
  ShrinkCall ownCall() const;
  bool beginRound();
  bool belongs(const std::shared_ptr<Line>& line, const ShrinkCall& theirs, bool probes);
  void refuseLeftOut(int rank, const std::shared_ptr<Line>& line);
  std::string differenceFrom(const ShrinkCall& theirs) const;
  void roundOver(uint64_t round, std::string text, bool tellsAll);
  void tellFar();
  void tellOneFar(int rank);
  void toldFar(int rank);
  // shrink_settle.cc: after the decision
  void informAll();
  void inform(int rank, const std::shared_ptr<Line>& line, uint64_t job);
  void stayFor(Reactor::Clock::duration span);
  void leaderWasHeard(std::shared_ptr<Line> line);
  void partFrom(Line& informed) const noexcept;

  ShrinkHome& home_;
  Reactor& reactor_;
  Heartbeat& heartbeat_;

  std::mutex mutex_;  // guards the next two
  std::shared_ptr<ShrinkVerdict> pending_;
  std::optional<Refusal> closed_;

  std::optional<Call> call_;
  std::vector<uint64_t> committed_;  // the jobs of all shrinks that this rank has behind it
  std::map<int, std::string> gone_;  // and why
  bool ownerLeft_ = false;

  uint64_t round_ = 0;            // since the last of them
  std::string differed_;          // how, in the round before
  bool called_ = false;           // in this round
  bool missed_ = false;           // the round before: the next call is of that one
  std::set<int> farToTell_;       // that it is over
  std::map<int, Probe> farTold_;  // those who are being told

  int leader_ = -1;
  std::unique_ptr<Prober> reach_;
  std::shared_ptr<Line> up_;  // to the leader
  std::string leaderSays_;
  Reactor::Token seekTimer_ = 0, lookAheadTimer_ = 0;
  std::optional<Trial> trial_, doubt_;

  std::map<int, Caller> callers_;
  std::map<int, Probe> probes_;
  std::string lastWaitText_;
  int failures_ = 0;
  Reactor::Token probeTimer_ = 0, pause_ = 0;
  Reactor::Clock::duration nextProbe_{}, nextPause_{};
  std::shared_ptr<Root> root_;

  std::map<int, Informed> informed_;
  std::map<int, std::weak_ptr<Line>> lastTold_;  // the line over which that rank was told the last thing
  std::shared_ptr<Line> lastUp_;                 // to the leader of what was committed, until it says that all know
  Reactor::Token settleTimer_ = 0;
  std::function<void()> left_;
};

}  // namespace tutti::control
