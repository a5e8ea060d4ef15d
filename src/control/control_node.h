// One rank's part of the control plane, on a thread of its own: its listener, its lines to parent and children, and
// what goes over them. Outlives the rank's Plane until no rank below needs it.
//
// Leaving. A rank whose owner has gone says goodbye to its parent once all its children have said goodbye, and then
// closes. So the tree is taken down from the leaves, and nobody above or beside is cut off early. A process that ends
// normally leaves for owners who have not, and the others may know: a goodbye says which ranks below have left so. A
// line that closes without a goodbye is a death: whoever sees it tells all its other neighbours, and since every part
// that the death leaves of the tree has such a witness, everyone learns of it.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/gathering.h"
#include "control/local_ranks.h"
#include "control/mailbox.h"
#include "control/streams.h"
#include "join/joining.h"
#include "process/background_threads.h"
#include "shrink/shrink.h"
#include "wire/heartbeat.h"
#include "wire/listener.h"

namespace tutti::control {

class ControlNode final : public Service,
                          public ShrinkHome,
                          public NewPlane,
                          public std::enable_shared_from_this<ControlNode> {
 public:
  explicit ControlNode(const JoinRequest& request);  // throws Error when nothing can be listened at

  // Service: the thread.
  void run() override;
  void hurry() override;
  void halt() override;

  // Any thread.
  Mailbox& mailbox() noexcept { return mailbox_; }
  uint64_t id() const noexcept { return id_; }                      // once it has joined
  Secret secret() const noexcept { return provenBy(request_.id); }  // the communicator's
  UniqueId childId(UniqueId told) const override { return inherit(std::move(told), request_.id); }
  bool isExposedToOthers() const noexcept { return isExposed(request_.id); }
  const noise::KeyPair& key() const noexcept override { return key_; }  // the rank's own
  int rank() const noexcept override { return request_.rank; }
  int size() const noexcept override { return request_.size; }
  const Bytes& info(int rank) const { return infos_.at(static_cast<size_t>(rank)); }  // after joining
  const RankAddress& who(int rank) const override { return people_.at(static_cast<size_t>(rank)); }
  bool isHere(int rank) const { return here_->has(rank); }  // after joining
  void startGather(uint64_t sequence, std::span<const std::byte> blob);
  void post(int to, uint64_t key, std::span<const std::byte> message);
  void requestStream(int peer, uint64_t key, StreamKind kind);
  void ask(int rank, std::span<const std::byte> question);
  void fail(const Failure& failure) noexcept;
  std::shared_ptr<ControlNode> shrink(const JoinRequest& like, std::span<const int> leftOut,
                                      const std::function<bool()>& cancelled);
  void leave();
  void leaveLater();  // the same without waiting for anything: from a reactor's thread

  // ShrinkHome, NewPlane: what shrink() needs of the old plane, and of the new.
  Dial::Target targetFor(int rank) const override;
  std::shared_ptr<NewPlane> beginNew(const JoinRequest& request) override;
  std::weak_ptr<void> alive() override { return weak_from_this(); }
  void whenJoined(Mailbox::Then then) override { mailbox_.whenJoined(std::move(then)); }
  void drop(const std::string& why) override;

 private:
  struct Child {
    RankAddress who;
    std::shared_ptr<Line> line;
    bool leaving = false;  // its owner has left
    bool left = false;     // said goodbye, or is gone for good
  };

  // A stream that came before this rank knew whose key is whose.
  struct EarlyStream {
    StreamHello hello;
    noise::Key caller;
    SecureSocket socket;
  };

  // What could not be posted for lack of memory.
  struct InShort {
    bool any = false;
    Stop stop = Stop::kError;
    ErrorCode code = ErrorCode::kRemote;
    bool unused = false;
  };

  // control_node.cc: the tree
  bool begin() noexcept;
  void end(bool inGoodOrder) noexcept;
  void cutAll() noexcept;
  void requireSecret() const;
  Listener::Request listenRequest() const;
  uint16_t rootPort() const noexcept;
  void arrived(const std::shared_ptr<Line>& line, Frame& first);
  void requireCaller(const Line& line, int rank) const;
  void streamArrived(Line& line, const Frame& first);
  void takeEarlyStreams();
  void admitEarly(EarlyStream& early);
  void childArrived(const std::shared_ptr<Line>& line, const Frame& first);
  std::future<void> beginLeave();
  void ownerLeaves();
  void leaveWithProcess(Deadline forCalls);
  void learned(const Secret& secret) noexcept;
  void placed(const std::shared_ptr<Line>& line, const RankAddress& parent);
  void onFrame(int side, Frame& frame);  // side: of a child, or kParent
  void onFailure(int side, const Failure& failure);
  void onMail(int side, Bytes&& payload);
  int sideOf(int other) const;  // on the way to that rank; kNoSide: it is this one
  void noteLeaving(int side);
  void onGoodbye(int side, std::span<const std::byte> ended);
  MailUse departureOf(int rank) const { return ended_.contains(rank) ? MailUse::kEnded : MailUse::kLeft; }
  void onGone(int side, const std::string& why);
  void onSilence(int side, const std::string& how);
  void watchOver(int side, const std::shared_ptr<Line>& line);
  void route(Bytes&& payload);
  std::string nameOf(int rank) const;
  void mailForMe(Mail mail);
  void answer(const Mail& question);
  bool joined() const noexcept { return !people_.empty(); }
  // control_node_gather.cc
  void onShare(int side, const Bytes& payload);
  void passUp(uint64_t sequence);
  void onTable(const std::shared_ptr<const Bytes>& payload);
  void enter();
  std::pair<std::vector<RankAddress>, std::vector<Bytes>> readRecords(const std::vector<Bytes>& table) const;
  void requireUnchanged(const std::vector<Bytes>& table) const;
  void requireKnown(const std::vector<RankAddress>& people) const;
  void checkShares();
  std::string missingText(uint64_t sequence) const;
  // control_node_leave.cc
  void broke(const std::string& what);
  void spread(const Failure& failure);
  void spreadInShort();
  void learn(const Failure& failure, const Line* from);
  void flood(const Failure& failure, const Line* from);
  Failure asToldToMe(Failure failure) const;
  void tellLeaving() noexcept;
  void checkLeave();
  void partFrom(const std::shared_ptr<Line>& line) noexcept;
  void lineParted() noexcept;
  void joinFailed(ErrorCode code, const std::string& text);

  static constexpr int kParent = 2, kNoSide = 3;
  static constexpr uint64_t kJoinSequence = 0;

  JoinRequest request_;
  const noise::KeyPair key_ = noise::drawKeyPair();
  uint64_t id_ = 0;
  RankAddress self_;
  Mailbox mailbox_;
  Reactor reactor_;
  Listener listener_;
  Heartbeat heartbeat_;
  Joining joining_;
  Streams streams_;
  Gathering gathering_;
  Shrink shrink_;

  RankAddress parentPerson_;
  std::shared_ptr<Line> parent_;
  std::array<Child, 2> children_;
  std::vector<EarlyStream> earlyStreams_;
  std::vector<Bytes> joinTable_;  // as the tree told it; from the root:
  std::optional<Digest> digest_;
  bool parentLeaving_ = false;  // its owner has left
  bool ownerLeft_ = false, leaving_ = false, flooded_ = false, revoked_ = false;
  std::optional<Failure> early_;  // heard of before this rank had joined
  int parting_ = 0;
  std::set<int> ended_;             // of this rank and those below: who left because its process ended
  std::atomic<InShort> inShort_{};  // by any thread
  Failure takenDown_, brokenDown_;  // the last words, made while there is memory for them
  uint64_t sharesSent_ = 0;         // exchanges to which this rank's whole subtree has contributed

  // Written once, before the owner learns that it has joined; read by any thread after that.
  std::vector<RankAddress> people_;
  std::vector<Bytes> infos_;
  std::shared_ptr<LocalRanks> here_;
};

}  // namespace tutti::control
