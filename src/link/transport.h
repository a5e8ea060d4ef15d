// The port that every transport implements, and the port through which it meets its peer.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/slots.h"
#include "link/link.h"
#include "net/secure_socket.h"
#include "topology/peer_info.h"

namespace tutti::link {

enum class StreamKind : uint8_t { kUnix, kTcp };

// One edge's private line to the peer, over the control plane. Nothing here blocks. Both ends use it alike.
class OobChannel {
 public:
  virtual ~OobChannel() = default;
  // Arrives at the peer's poll(), in order. While a transport is set up: 64 KiB at most, and 1 MiB in all.
  virtual void put(std::span<const std::byte> blob) = 0;
  virtual std::optional<Bytes> poll() = 0;  // the next blob of the peer, if it has come
  // Asks for a connected stream socket to the peer, authenticated at both ends. Both ends ask; the first pollStream()
  // that returns a value gives each its end. Throws Error when it cannot be had (and says why): that ends the request.
  virtual void requestStream(StreamKind kind) = 0;
  virtual std::optional<SecureSocket> pollStream() = 0;
};

struct Edge {
  int self = 0, peer = 0;  // ranks
  int channel = 0;
  topology::PeerInfo selfInfo, peerInfo;
  Doorbell* selfBell = nullptr;  // where this rank sleeps: inside selfBellFd's memory, one Doorbell at offset 0
  int selfBellFd = -1;           // memory file to pass to a peer on the same host, or -1
  uint32_t slotBytes = slots::kBytes, depth = slots::kDepth;
  uint32_t streamDepth = 0;        // slots at each end of a stream of bytes, if they are more than `depth`
  uint32_t mappedDepth = 0;        // slots of memory that both ends have mapped, if they are more than `depth`
  uint32_t lines = slots::kLines;  // Fifo::lines, if they are more than slots
  bool dividesSlots = false;       // Fifo::parts
};

// What a transport could do between two ranks; or, when `possible` is false, the reason why not.
struct Reachability {
  bool possible = false;
  double latencyUs = 0;     // one slot of a few bytes, from post to ready
  double bandwidthGBs = 0;  // a long message
  std::string reason;
};

// A connection in the making: a small state machine, so that one thread can set up many at once and no order of calls
// on the ranks can deadlock.
class Setup {
 public:
  virtual ~Setup() = default;
  // Does what can be done now. Returns the connection once it stands, null before. Never blocks. Throws Error on
  // failure.
  virtual std::unique_ptr<Connection> advance() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const noexcept = 0;
  // Where neither of the two lacks anything for it.
  virtual Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const = 0;
  // What it says of its cost, where that is no part of this build and so might differ from rank to rank; empty:
  // nothing.
  virtual std::string announced() const { return {}; }
  // What this process lacks to use it with anybody, such as a device; empty: nothing. May look at the machine.
  virtual std::string lack(const topology::PeerInfo&) const { return {}; }
  // Whether a communicator on a GPU has it as NAME+gpu, too, with slots there.
  virtual bool reachesGpus() const noexcept { return false; }
  // Whether it encrypts what crosses a network where that is asked for, or crosses none.
  virtual bool keepsSecrets() const noexcept { return true; }
  // `meeting` outlives the Setup. Both ends open the same transport for the same edge.
  virtual std::unique_ptr<Setup> open(const Edge& edge, OobChannel& oob) = 0;
};

}  // namespace tutti::link
