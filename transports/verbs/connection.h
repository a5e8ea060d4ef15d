// A link over verbs in the making, and made: the greeting of its two ends, and what it sleeps on.
#pragma once
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <tutti/transport.h>

#include "transports/verbs/device_queue.h"
#include "transports/verbs/striped_link.h"

namespace tutti::verbs {

struct LinkSettings {
  std::string ports;  // TUTTI_IB_HCA
  int pairsPerPort = 1;
  size_t mostMemory = 0;  // bytes of the program's memory that a device may have registered
  Behaviour behaviour{};
};

class Connection {
 public:
  // Registers the edge's memory and greets the peer. Throws std::runtime_error.
  Connection(const tuttiTransportEdge& edge, const tuttiTransportLine& line, const LinkSettings& settings,
             const tuttiTransportHost& host);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Advanced once both ends are ready to be written to.
  Progress connect() noexcept;
  Progress progress() noexcept { return link_->progress(std::chrono::steady_clock::now()); }
  bool sending() const noexcept { return link_->sending(); }
  // What is said of these in tutti/transport.h.
  bool hold(const tuttiTransportMemory& memory) noexcept;
  void letGo(const tuttiTransportMemory& memory) noexcept { link_->letGo(memory.number); }
  void takeBack() noexcept { link_->takeBack(std::chrono::steady_clock::now()); }
  int interest(short& events) noexcept;
  std::string error() const;

 private:
  struct Greeting;
  bool heardGreeting();
  void join(const Greeting& peers);
  bool heardReady();
  std::string name() const;
  void tellSlots() const noexcept;

  tuttiTransportEdge edge_;
  std::string peerHost_;
  size_t mostMemory_;
  tuttiTransportLine line_;
  const tuttiTransportHost& host_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;  // until they are the link's
  std::unique_ptr<StripedLink> link_;
  bool isConnected_ = false;
  int sleepOn_ = -1;  // an epoll descriptor over all completion channels
  int awake_ = -1;    // readable at any time
  std::string why_;
};

}  // namespace tutti::verbs
