// The control plane of one communicator: it brings the ranks together and watches over them afterwards. Never data.
//
// Ranks first meet at the root, whose addresses the unique id carries; each is told its parent in a tree, connects to
// it, and the tree then gathers everyone's card and hands the table down: O(log n) rounds. The tree stays up: it routes
// mailbox messages, carries failures and abort, and is kept by one thread per rank that sleeps in epoll.
// Every connection, to the root, in the tree or a data stream, proves the secret with a keyed MAC over both nonces
// (libsodium) before a byte is allocated for it; frames are versioned and length-checked.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/fd.h"
#include "control/unique_id.h"

namespace tutti::control {

// Where and how to listen. Read once from the environment (TUTTI_SOCKET_IFNAME: comma list of interface prefixes,
// "=exact", "^excluded"; TUTTI_SOCKET_FAMILY: 4 or 6; TUTTI_PORT_RANGE: "first-last") and passed down.
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

struct JoinRequest {
  UniqueId id;
  int rank = 0, size = 1;
  Bytes card;  // opaque to the control plane; everyone gets everyone's
  Network network;
  Deadline deadline = Deadline::never();
};

enum class StreamKind : uint8_t { kUnix, kTcp };

struct Failure {
  int rank = -1;         // who left or failed; -1 when not known
  std::string text;      // "rank 3 (host n2, pid 411) left: connection closed"
  bool aborted = false;  // it called abort, it did not die
};

class Plane {
 public:
  // Blocks until all ranks are there. Throws Error: kTimeout naming the ranks that are missing, kInvalidUsage for two
  // ranks with one number or for differing sizes, kRemote when another rank gave up.
  static std::unique_ptr<Plane> join(const JoinRequest& request);

  // Leaves in good order: the rank's part of the tree goes on working in the background, without the caller, until no
  // rank below it needs it any more (at the latest when the process ends, for a bounded time). Never blocks.
  virtual ~Plane() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual std::span<const std::byte> card(int rank) const = 0;

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
  virtual std::optional<UniqueFd> pollStream(int peer, uint64_t key) = 0;

  // Sleeps until something has come that poll(), pollStream() or failure() would show, and `seen` is older than that;
  // or until the deadline. Returns what to hand in next time (0 the first time): look, and sleep only if nothing was
  // there.
  virtual uint64_t awaitNews(uint64_t seen, Deadline deadline) = 0;

  // Set as soon as a failure or an abort anywhere is known here. A wait loop reads it between looks at its data.
  virtual const std::atomic<bool>& failed() const noexcept = 0;
  virtual std::optional<Failure> failure() const = 0;
  // Tells every rank that this one gives up, with its reason; returns at once. Any thread.
  virtual void abort(const std::string& reason) noexcept = 0;
};

}  // namespace tutti::control
