// Calls one rank's listener until it answers or is found gone: its host says that nobody listens there any more, or
// nothing is heard for too long.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "wire/dial.h"

namespace tutti::control {

class Prober {
 public:
  using Won = std::function<void(std::shared_ptr<Line>)>;
  using Gone = std::function<void(const std::string& why)>;

  // One of the two is called, once, and not from within the constructor.
  Prober(Reactor& reactor, Dial::Target target, std::chrono::milliseconds patience, Won won, Gone gone);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

 private:
  void lost(const std::string& why);
  void giveUp(const std::string& why);

  Reactor& reactor_;
  Won won_;
  Gone gone_;
  std::shared_ptr<Dial> dial_;
  Reactor::Token patience_ = 0;
  std::string last_ = "no answer";
};

}  // namespace tutti::control
