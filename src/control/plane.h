// The control plane of one communicator: it brings the ranks together and watches over them afterwards. Never data.
//
// Ranks first meet at the root, whose addresses the unique id carries; each is told its parent in a tree, connects to
// it, and the tree then gathers everyone's info and hands the table down: O(log n) rounds. The tree stays up: it routes
// mailbox messages, carries failures and abort, and is kept by one thread per rank that sleeps in epoll.
// Every connection, to the root, in the tree or a data stream, proves the secret (net/handshake.h) before a byte is
// allocated for it; frames are versioned and length-checked.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "net/secure_socket.h"
#include "wire/answer.h"
#include "wire/failure.h"
#include "wire/join_request.h"
#include "wire/stream_kind.h"

namespace tutti::control {

struct ChildRoot {
  Bytes told;  // may be told to all: only members can read in it the secret by which they join
  uint64_t job = 0;
};

class Plane {
 public:
  // Begins to join, in the background. Until awaitJoined() has returned true, only rank(), size(), fail() and failed()
  // may be called.
  static std::shared_ptr<Plane> begin(const JoinRequest& request);
  // Blocks until all ranks are there. Throws Error: kTimeout naming the ranks that are missing, kInvalidUsage for two
  // ranks with one number or for differing sizes, kRemote when another rank gave up or when fail() was called here.
  // False: not before `until`, the join goes on.
  virtual bool awaitJoined(Deadline until) = 0;

  // Tells the others that this rank leaves in good order. Afterwards it may only be asked for what it knows, and be
  // destroyed, which leaves too where that was not done. Never blocks.
  virtual void leave() noexcept = 0;
  // Leaves in good order: the rank's part of the tree goes on working in the background, without the caller, until no
  // rank below it needs it any more (at the latest when the process ends, for a bounded time). Never blocks.
  virtual ~Plane() = default;

  // The same on all ranks of this plane and of no other; it gives away nothing of the secret.
  virtual uint64_t id() const noexcept = 0;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual std::span<const std::byte> info(int rank) const = 0;
  // Whether that rank has joined in this process, as the process itself knows. Ranks get there one after the other: it
  // is certain of all after an exchange.
  virtual bool isHere(int rank) const = 0;

  // Everyone's blob at everyone, in rank order. Collective: all ranks call it, in the same order, from one thread each.
  // Throws Error(kTimeout | kRemote); after kTimeout the ranks are out of step, and the plane is good only for leaving.
  virtual std::vector<Bytes> allGather(std::span<const std::byte> mine, Deadline deadline) = 0;

  // Mailboxes: messages from one rank to another under a key, in order. post() never blocks; poll() returns the next
  // one if it has come, and throws Error(kRemote) when there is none and the communicator has failed. Any thread.
  virtual void post(int to, uint64_t key, std::span<const std::byte> message) = 0;
  virtual std::optional<Bytes> poll(int from, uint64_t key) = 0;

  // An authenticated, connected stream socket to a peer; both ends ask with the same key, the lower rank dials, in the
  // background: all the peer's addresses are tried. kUnix needs the same host. pollStream() returns it once it stands
  // and throws Error when it cannot be had. Any thread.
  virtual void requestStream(int peer, uint64_t key, StreamKind kind) = 0;
  virtual std::optional<SecureSocket> pollStream(int peer, uint64_t key) = 0;
  // `news` is called whenever poll() or pollStream() may have something, or all has failed, on a thread of the plane:
  // it only wakes who waits. Another one takes its place; none ({}) does before what it names goes. Any thread.
  virtual void whenNews(std::function<void()> news) = 0;

  // A question for another rank's `respond`; also when it has stopped working, and after a failure, as far as the tree
  // still reaches it. Never blocks, and may stay without an answer. lastAnswer() gives the latest of that rank. Any
  // thread.
  virtual void ask(int rank, std::span<const std::byte> question) = 0;
  virtual std::optional<Answer> lastAnswer(int rank) const = 0;
  // The ranks that pass a question to `rank` on, in their order: while one of them is silent, so are all behind it.
  virtual std::vector<int> wayTo(int rank) const = 0;

  // Set as soon as a failure or an abort anywhere is known here. A wait loop reads it between looks at its data.
  virtual const std::atomic<bool>& failed() const noexcept = 0;
  virtual std::optional<Failure> failure() const = 0;
  // Stops the communicator on every rank, for this reason; returns at once, and ends a join that is under way. Only the
  // first failure counts. Stop::kRevoke leaves the tree as it is. Any thread.
  virtual void fail(const Failure& failure) noexcept = 0;

  // The survivors' way on after a failure (a death, an abort, a revoke): agrees with the others on who is still there,
  // and joins a new plane with them, with ranks in the old order. Collective over the survivors: a rank that is alive
  // but does not call it is waited for until the deadline. Ranks that die meanwhile are left out as well. `like` gives
  // the new plane's info, network, deadline, heartbeat, encryption, agreement and respond; its id, rank and size are
  // not read. Throws Error: kTimeout naming those who did not come, kRemote when this rank was left out, and when
  // fail() is called meanwhile. `leftOut`: other ranks that are to stay behind, whether they live or not, and do not
  // call; the same on all survivors, else kInvalidUsage for all. `cancelled`: whether fail() has been called for this
  // shrink's sake, which can come before it begins; asked on another thread.
  virtual std::shared_ptr<Plane> shrink(const JoinRequest& like, std::span<const int> leftOut = {},
                                        const std::function<bool()>& cancelled = {}) = 0;

  // A root for a communicator of some of these ranks. Who opens it and then does not begin to join closes it
  // (join/open_root.h).
  virtual ChildRoot openChildRoot(const Network& network, Deadline lifetime, std::span<const int> members) = 0;
  // The id in what openChildRoot() told on rank `leader`, for this rank, which stands at `place` among the members.
  // Throws Error(kRemote) when it is not from there or not for this rank.
  virtual UniqueId childId(std::span<const std::byte> told, int leader, size_t place) const = 0;

  // An id that this rank has been handed, to be told to all: only ranks of this plane can read its secret.
  virtual Bytes sealId(const UniqueId& id) const = 0;
  // The id in what sealId() returned on rank `from`. Throws Error(kRemote) when it is not from there.
  virtual UniqueId openId(std::span<const std::byte> told, int from) const = 0;
};

}  // namespace tutti::control
