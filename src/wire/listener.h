// Where others call: TCP at the chosen addresses and an abstract Unix socket. Only callers that have proved the secret
// and said what they want get through; the others are dropped after a few seconds, and only so many may wait, of one
// address a quarter of them: then of that address, or of the one with most of them, those give way that have said
// least. So a crowd holds up nobody elsewhere. Who belongs here calls again. What was refused is logged, in bounds.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/lack.h"
#include "net/network.h"
#include "net/refusals.h"
#include "wire/line.h"

namespace tutti::control {

class Listener {
 public:
  // A caller and its first frame.
  using Arrival = std::function<void(std::shared_ptr<Line>, Frame& first)>;

  struct Request {
    HandshakeContext context;            // context.listener becomes the endpoint's id
    std::vector<std::string> unixNames;  // the endpoint's is the first that is not another user's
    Network network;
    uint16_t port = 0;  // not 0: this one and no other
    bool tcp = true;
    bool shut = false;  // nobody is let in before open(): callers wait at the door
    uint16_t kept = 0;  // not 0: of a range never this one, which is for the root
  };

  // Throws Error: kSystem or kInvalidUsage, when nothing can be listened at.
  Listener(Reactor& reactor, const Request& request, Arrival arrival);

  // Called, with an errno value, when for a while nobody could be let in, because there was no descriptor left.
  using Starved = std::function<void(int error)>;
  void whenStarved(Starved starved) { starved_ = std::move(starved); }

  const Endpoint& endpoint() const noexcept { return endpoint_; }
  // Of one that is shut: from now on those get in who prove that secret.
  void open(const Secret& secret) noexcept;
  void close() noexcept;
  // Hangs up on a caller that has proved the secret, and then said what does not belong here.
  void refuse(Line& caller, const std::string& why) noexcept;
  // The last caller that did not know the secret; empty: there was none.
  const std::string& lastUnproven() const noexcept { return lastUnproven_; }

 private:
  using Crowds = std::map<std::string, size_t>;  // how many callers wait, by neighbourhoodOf()
  struct Pending {
    Crowds::iterator crowd;
    Reactor::Clock::time_point since;
    std::shared_ptr<Line> line;
    Reactor::Token timer = 0;
  };
  using PendingAt = std::list<Pending>::iterator;
  struct Socket {
    UniqueFd fd;
    Reactor::Token watch = 0;
  };

  int openUnix(const Request& request);
  void openTcp(const Request& request);
  bool openWildcards(const Request& request, const std::vector<Address>& chosen, uint16_t port);
  bool openSelected(const std::vector<Address>& chosen, uint16_t port);
  void add(UniqueFd fd);
  void acceptFrom(int fd);
  void admit(UniqueFd fd);
  void makeRoom(const std::string& neighbourhood);
  void welcome(UniqueFd fd, std::string neighbourhood);
  void await(PendingAt at, const std::shared_ptr<Line>& caller);
  PendingAt firstToGo(Crowds::const_iterator within);
  PendingAt firstToGo();
  void drop(PendingAt at, const std::string& why);
  void remove(PendingAt at) noexcept;
  bool makeWay(int fd, int error);
  void starve(int fd, int error);
  void shutFor(int fd, std::chrono::milliseconds pause);

  Reactor& reactor_;
  SeenHellos seen_;
  HandshakeContext context_;
  uint32_t awaited_;  // at each socket: EPOLLIN, or nothing while shut
  Arrival arrival_;
  Endpoint endpoint_;
  std::vector<Socket> sockets_;
  std::list<Pending> pending_;
  Crowds crowds_;
  size_t maxPending_;
  Refusals refusals_;
  std::string lastUnproven_;
  bool toldOfDescriptors_ = false;
  Lack lack_;
  Starved starved_;
};

}  // namespace tutti::control
