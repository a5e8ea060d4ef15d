// The control plane of one communicator: it brings the ranks together and watches over them afterwards. Never data.
//
// Ranks first meet at the root, whose addresses the unique id carries; each is told its parent in a tree, connects to
// it, and the tree then gathers everyone's card and hands the table down: O(log n) rounds. The tree stays up: it routes
// mailbox messages, carries failures and abort, and is kept by one thread per rank that sleeps in epoll.
// Every connection, to the root, in the tree or a data stream, proves the secret (base/handshake.h) before a byte is
// allocated for it; frames are versioned and length-checked.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/secure_socket.h"
#include "control/unique_id.h"

namespace tutti::control {

// As many as schedules have room for (schedule::Operand). A control plane alone would carry more.
inline constexpr int kMaxRanks = 1 << 14;

// What is wrong with being that rank of so many; nullopt: nothing.
std::optional<std::string> wrongPlace(int rank, int size);

// Where and how to listen. Read once from the environment (TUTTI_SOCKET_IFNAME: comma list of interface prefixes,
// "=exact", "^excluded"; TUTTI_SOCKET_FAMILY: 4, 6 or 0; TUTTI_PORT_RANGE: "first-last") and passed down.
struct Network {
  std::string interfaces;
  int family = 0;                        // 0: both
  uint16_t firstPort = 0, lastPort = 0;  // 0: any
  bool unixSockets = true;               // false: TCP even between ranks of one host (TUTTI_UNIX_SOCKETS=0)
  static Network fromEnvironment();      // throws Error(kInvalidArgument)
};

// The root of a job: listens where the ranks first meet. Lives in the process that asked for the unique id, keeps a
// thread of its own until every rank has been placed or `lifetime` is over, and then goes away by itself.
UniqueId openRoot(const Network& network, Deadline lifetime);
// The same for ranks that are all in this process: nobody is handed an id, and no text speaks of one.
UniqueId openRootHere(const Network& network, Deadline lifetime);

// Answers another rank's question (Plane::ask) about this one. Called on the plane's thread, which outlives the Plane
// for a while: it must own what it looks at, return soon and not throw.
using Respond = std::function<Bytes(std::span<const std::byte> question)>;

// What every rank must have set alike: a name and a value each, both as people know them.
struct Agreed {
  std::string name, value;
  friend bool operator==(const Agreed&, const Agreed&) = default;
};
using Agreement = std::vector<Agreed>;

struct JoinRequest {
  UniqueId id;
  int rank = 0, size = 1;
  Bytes card;  // opaque to the control plane; everyone gets everyone's
  Network network;
  Deadline deadline = Deadline::never();
  // A neighbour in the tree that is silent for so long counts as gone: stopped, its host dead or its cable cut. Zero:
  // silence is no failure. The same on every rank.
  std::chrono::milliseconds heartbeat{20'000};
  // Seal what crosses a network: control lines and TCP streams. The same on every rank (a rank that differs is refused,
  // with a text that says so).
  bool encrypt = false;
  // A rank that differs from the first one to come in a value of a name that both have is refused; the text tells both.
  Agreement agreement;
  Respond respond;  // may be empty: questions get an empty answer
};

enum class StreamKind : uint8_t { kUnix, kTcp };

// Why a communicator stopped.
enum class Stop : uint8_t {
  kDeath,    // a rank's process ended
  kSilence,  // nothing was heard of a rank for a heartbeat
  kAbort,    // a rank called abort
  kRevoke,   // a rank called revoke: nobody is gone
  kError     // an operation failed on a rank, which is still there
};

// The first thing that stopped a communicator, as every rank is told it.
struct Failure {
  int rank = -1;  // who is gone, or whom the failure comes from; -1 when not known
  Stop stop = Stop::kDeath;
  ErrorCode code = ErrorCode::kRemote;  // what the other ranks' calls return
  std::string text;                     // "rank 3 (host n2, pid 411) left: connection closed"
};

// What a rank, or the control plane in its place, says to a question.
struct Answer {
  uint64_t count = 0;  // how many have come from that rank
  bool left = false;   // the rank's owner has left in good order: it will do nothing any more
  Bytes body;          // of its `respond`; empty when it can not be asked any more
};

class Plane {
 public:
  // Begins to join, in the background. Until awaitJoined() has returned true, only rank(), size(), fail() and failed()
  // may be called.
  static std::unique_ptr<Plane> begin(const JoinRequest& request);
  // Blocks until all ranks are there. Throws Error: kTimeout naming the ranks that are missing, kInvalidUsage for two
  // ranks with one number or for differing sizes, kRemote when another rank gave up or when fail() was called here.
  // False: not before `until`, the join goes on.
  virtual bool awaitJoined(Deadline until) = 0;
  // Both.
  static std::unique_ptr<Plane> join(const JoinRequest& request);

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
  virtual std::span<const std::byte> card(int rank) const = 0;
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

  // A question for another rank's `respond`; also when it has stopped working, and after a failure, as far as the tree
  // still reaches it. Never blocks, and may stay without an answer. lastAnswer() gives the latest of that rank. Any
  // thread.
  virtual void ask(int rank, std::span<const std::byte> question) = 0;
  virtual std::optional<Answer> lastAnswer(int rank) const = 0;
  // The ranks that pass a question to `rank` on, in their order: while one of them is silent, so are all behind it.
  virtual std::vector<int> wayTo(int rank) const = 0;

  // Sleeps until something has come that poll(), pollStream() or failure() would show, and `seen` is older than that;
  // or until the deadline. Returns what to hand in next time (0 the first time): look, and sleep only if nothing was
  // there.
  virtual uint64_t awaitNews(uint64_t seen, Deadline deadline) = 0;

  // Set as soon as a failure or an abort anywhere is known here. A wait loop reads it between looks at its data.
  virtual const std::atomic<bool>& failed() const noexcept = 0;
  virtual std::optional<Failure> failure() const = 0;
  // Stops the communicator on every rank, for this reason; returns at once, and ends a join that is under way. Only the
  // first failure counts. Stop::kRevoke leaves the tree as it is. Any thread.
  virtual void fail(const Failure& failure) noexcept = 0;

  // The survivors' way on after a failure (a death, an abort, a revoke): agrees with the others on who is still there,
  // and joins a new plane with them, with ranks in the old order. Collective over the survivors: a rank that is alive
  // but does not call it is waited for until the deadline. Ranks that die meanwhile are left out as well. `like` gives
  // the new plane's card, network, deadline, heartbeat, encryption, agreement and respond; its id, rank and size are
  // not read. Throws Error: kTimeout naming those who did not come, kRemote when this rank was left out, and when
  // fail() is called meanwhile. The new plane's oldRank() tells who is who.
  virtual std::unique_ptr<Plane> shrink(const JoinRequest& like) = 0;
  // Of a plane that shrink() made: the rank that `rank` had before. Otherwise the same rank.
  virtual int oldRank(int rank) const = 0;

  // A root for a communicator of some of these ranks. What it returns may be told to all: only `members` can read in it
  // the secret by which they join.
  virtual Bytes openChildRoot(const Network& network, Deadline lifetime, std::span<const int> members) = 0;
  // The id in what openChildRoot() returned on rank `leader`, for this rank, which stands at `place` among the members.
  // Throws Error(kRemote) when it is not from there or not for this rank.
  virtual UniqueId childId(std::span<const std::byte> told, int leader, size_t place) const = 0;
};

}  // namespace tutti::control
