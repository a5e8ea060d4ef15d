// A rank's way into the tree: it calls the root, is told its parent and calls that one; and it listens to the root,
// which knows who is missing, until the whole table has come.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wire/dial.h"
#include "wire/heartbeat.h"
#include "wire/join_request.h"
#include "wire/messages.h"

namespace tutti::control {

class Joining {
 public:
  struct Events {
    // The secret of the job, where the id has none: from here on the request's.
    std::function<void(const Secret&)> learned;
    // What the root has heard of all ranks' records: all have come.
    std::function<void(const Digest&)> digest;
    // The parent's line and who it is; without a line for rank 0.
    std::function<void(std::shared_ptr<Line>, const RankAddress&)> placed;
    std::function<void(ErrorCode, const std::string&)> failed;  // once
    std::function<std::string()> missing;  // what is known here about ranks that have not been heard of
  };
  Joining(Reactor& reactor, Heartbeat& heartbeat, const JoinRequest& request, const RankAddress& self,
          const noise::KeyPair& key, Events events)
      : reactor_(reactor),
        heartbeat_(heartbeat),
        request_(request),
        self_(self),
        key_(key),
        events_(std::move(events)) {}

  void start();
  // A neighbour in the tree is gone. The root will say why; if it does not, this is the reason.
  void treeBroke(const std::string& why);
  // The table is here: tells the root.
  void succeed();
  void fail(ErrorCode code, const std::string& text);
  // The same where the owner wants it no more, and may begin again at once: no root is called for that.
  void giveUp(ErrorCode code, const std::string& text);
  // A join that cannot begin.
  void tellUnbegun(const std::string& why) noexcept;
  // The process has no descriptor left for what it takes: the same, and says whose failure it is.
  void starve(const std::string& why);
  // Drops everything that is under way.
  void stop() noexcept;
  // And hangs up on the root, as the end of the process would.
  void cut() noexcept;
  bool over() const noexcept { return over_; }
  uint64_t draw() const noexcept { return draw_; }  // the root's, once this rank has its place

 private:
  // A rank 0 that could not open the root of its job: it calls the one that is there, but for its word alone.
  bool isTaken() const noexcept { return !request_.id.taken.empty(); }
  void callRoot();
  void onRoot(std::shared_ptr<Line> line);
  void onRootFrame(Frame& frame);
  void onRootGone(const std::string& why);
  void onDigest(const Bytes& payload);
  void learn(std::span<const std::byte> wrapped);
  void callParent(const RankAddress& parent);
  std::string whoLeft(const std::string& why) const;  // empty: nobody has
  std::string obstacle() const;                       // to the connection that is being tried
  void onDeadline();
  bool isUnheard() const noexcept { return !root_ && !placed_ && !isTaken(); }
  void end(ErrorCode code, const std::string& text);
  void tell(Kind kind, const std::function<Bytes()>& last) noexcept;

  Reactor& reactor_;
  Heartbeat& heartbeat_;
  const JoinRequest& request_;
  const RankAddress& self_;
  const noise::KeyPair& key_;
  Events events_;
  std::shared_ptr<Dial> dial_;
  Dial::Pause pause_{};  // before the root is called: one that only hangs up is not called without end
  std::shared_ptr<Line> root_;
  Reactor::Token deadline_ = 0, patience_ = 0;
  bool placed_ = false, allCame_ = false, over_ = false;
  uint64_t draw_ = 0;
  std::string calling_;  // its parent, for the text of a time-out
  std::string lastRefusal_;
  std::string lostRoot_;  // it was there, and has hung up
  std::string unproven_;  // of the last one at the root's addresses who had another secret; then lastRefusal_ is later
};

}  // namespace tutti::control
