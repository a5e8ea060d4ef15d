// Which transports there are, and which of them an edge gets.
//
// For each edge the candidates are ordered by predicted cost, connected, and tested with a small write-read-flag
// exchange under a deadline. A failure is logged with its cause and the next candidate is taken; both ends agree
// through the meeting.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "link/transport.h"
#include "link/transport_settings.h"

namespace tutti::link {

// What two ranks would try first.
struct Way {
  const Transport* transport = nullptr;  // null: there is nothing between them
  Reachability reach{};
  std::vector<std::string> notFaster{};  // "name: why not", of those that would cost less; of all, where there is none
};

class Registry {
 public:
  // Throws Error(kInvalidArgument) where another one has its name.
  void add(std::unique_ptr<Transport> transport);
  // Narrows the list: "tcp", "shm,tcp" (only these) or "^p2p,shm" (all but these); "verbs" means verbs+gpu as well,
  // and verbs+gpu means verbs where there is none of it (buffers in host memory).
  // Throws Error(kInvalidArgument) that lists the known names when one is unknown or none is left.
  void narrow(std::string_view list);
  // Usable transports between two ranks, cheapest first (latency + 64 KiB / bandwidth); the same list at both ends,
  // whichever asks. `excluded`, if given, receives a line "name: reason" for each of the rest.
  std::vector<Transport*> candidates(const topology::PeerInfo& self, const topology::PeerInfo& peer,
                                     std::vector<std::string>* excluded = nullptr) const;
  // The first of them. The same at both ends.
  Way wayBetween(const topology::PeerInfo& self, const topology::PeerInfo& peer) const;
  // The names of those that narrow() has left.
  std::vector<std::string> allowed() const;
  // The same with what each announces, in an order that does not depend on theirs: what ranks must have alike.
  std::vector<std::string> terms() const;
  // From now on none is used whose bytes others can read on the network.
  void demandSecrecy() noexcept { secret_ = true; }
  // What this process lacks for each of those that are left and lack something, by name: for its card.
  std::map<std::string, std::string> lacks(const topology::PeerInfo& self) const;
  const std::vector<std::unique_ptr<Transport>>& all() const noexcept { return transports_; }
  // From now on a transport that fails is no warning: whoever connects tells it in a way of its own.
  void keepQuiet() noexcept { quiet_ = true; }
  // Whether nobody has said so yet: what many links suffer from is told once. Any thread.
  bool isNews(const std::string& text) const noexcept;

 private:
  struct Told {
    std::mutex mutex;  // guards what follows
    std::set<std::string> texts;
  };
  Reachability reach(size_t number, const topology::PeerInfo& self, const topology::PeerInfo& peer) const;

  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<bool> allowed_;
  bool secret_ = false, quiet_ = false;
  std::unique_ptr<Told> told_ = std::make_unique<Told>();
};

// All transports of this build and those of `settings`, narrowed by `list` when it is not empty. Defined beside the
// transports, which src/ does not know. Throws Error(kInvalidArgument).
Registry builtinTransports(std::string_view list, const TransportSettings& settings = {});

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
