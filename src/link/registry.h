// Which transports there are, and which of them an edge gets.
//
// For each edge the candidates are ordered by predicted cost, connected, and tested with a small write-read-flag
// exchange under a deadline. A failure is logged with its cause and the next candidate is taken; both ends agree
// through the meeting.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "link/transport.h"

namespace tutti::link {

class Registry {
 public:
  void add(std::unique_ptr<Transport> transport);
  // Narrows the list: "tcp", "shm,tcp" (only these) or "^p2p,shm" (all but these). Throws Error(kInvalidArgument)
  // that lists the known names when one is unknown or none is left.
  void narrow(std::string_view list);
  // Usable transports between two ranks, cheapest first (latency + 64 KiB / bandwidth); the same list at both ends,
  // whichever asks. `excluded`, if given, receives a line "name: reason" for each of the rest.
  std::vector<Transport*> candidates(const topology::PeerInfo& self, const topology::PeerInfo& peer,
                                     std::vector<std::string>* excluded = nullptr) const;
  // The names of those that narrow() has left.
  std::vector<std::string> allowed() const;
  const std::vector<std::unique_ptr<Transport>>& all() const noexcept { return transports_; }
  // Whether nobody has said so yet: what many links suffer from is told once. Any thread.
  bool isNews(const std::string& text) const noexcept;

 private:
  struct Told {
    std::mutex mutex;  // guards what follows
    std::set<std::string> texts;
  };
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<bool> allowed_;
  std::unique_ptr<Told> told_ = std::make_unique<Told>();
};

// All transports of this build, narrowed by `list` when it is not empty. Defined beside the transports, which src/ does
// not know. Throws Error(kInvalidArgument).
Registry builtinTransports(std::string_view list);

// Brings one edge up: candidate after candidate, self-test, agreement. Non-blocking; drive it with advance(). The peer
// may come to want this edge much later than this end: `patience` runs from the moment when both do.
class EdgeSetup {
 public:
  EdgeSetup(const Registry& registry, const Edge& edge, std::unique_ptr<OobChannel> oob,
            std::chrono::milliseconds patience);
  ~EdgeSetup();
  // The connection once both ends have agreed on it; null before. Throws Error that names the peer, each transport and
  // what is wrong with it: kTimeout, kSystem when all that were tried have failed, kInvalidUsage when none may be used.
  std::unique_ptr<Connection> advance();
  const Edge& edge() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti::link
