// Calls a listener: its Unix sockets first, then all its addresses, each a little after the one before ("happy
// eyeballs", RFC 8305), until one of them proves the secret. Round after round until cancelled, unless told not to.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/lack.h"
#include "wire/line.h"

namespace tutti::control {

class Dial : public std::enable_shared_from_this<Dial> {
 public:
  struct Target {
    HandshakeContext context;  // context.listener is the id of the listener that is meant
    std::vector<std::string> unixNames;
    std::vector<Address> addresses;
    // Not empty: a root is meant, and may have left a name in this folder, or does so yet (job/root_name.h).
    std::string folder = {};
  };
  using Won = std::function<void(std::shared_ptr<Line>)>;
  using Lost = std::function<void(const std::string& why)>;

  // `won` gets the line, with the hello done and without events. `lost` is called when a whole round has failed; the
  // next one begins by itself after a pause, unless `lost` cancels. The first begins after `pause`.
  using Pause = Reactor::Clock::duration;
  static std::shared_ptr<Dial> start(Reactor& reactor, Target target, Won won, Lost lost, Pause pause = {});
  // What follows on a pause that was not enough.
  static Pause longer(Pause pause) noexcept;
  void cancel() noexcept;
  // What has become of the places of this round, which need not be over.
  std::string soFar() const;
  // Of the round that has failed: a host answered that nobody listens there.
  bool refused() const noexcept { return refused_; }
  // For a while, this process has had no descriptor to call with.
  bool starved() const noexcept { return lack_.lasts(); }
  // Of the same round: somebody answered who has another secret, or means another job.
  bool unproven() const noexcept { return unproven_; }
  // Of the same round: nobody listens at a Unix name where somebody hung up, in any round, before the secret was
  // proved.
  bool left() const noexcept { return left_; }

 private:
  Dial(Reactor& reactor, Target target, Won won, Lost lost)
      : reactor_(reactor), target_(std::move(target)), won_(std::move(won)), lost_(std::move(lost)) {}
  struct Attempt {
    std::shared_ptr<Line> line;
    Reactor::Token timer = 0;
  };
  size_t places() const noexcept { return unixNames_.size() + target_.addresses.size(); }
  bool overUnix(size_t place) const noexcept { return place < unixNames_.size(); }
  UniqueFd open(size_t place) noexcept;
  std::string nameOf(size_t place) const;
  void noteError(size_t place, int error) noexcept;
  void startRound();
  void next();
  void attempt(size_t place);
  void failed(size_t place, const std::string& why);
  void succeeded(size_t place);
  void endRound();

  Reactor& reactor_;
  Target target_;
  Won won_;
  Lost lost_;
  std::vector<std::string> unixNames_;  // of this round
  std::vector<Attempt> attempts_;       // by place
  size_t started_ = 0, running_ = 0;
  Reactor::Token stagger_ = 0, pause_ = 0;
  Pause lastPause_{};
  std::string reasons_;
  bool refused_ = false, unproven_ = false, left_ = false, over_ = false;
  std::string hungUp_;    // the name of who did
  bool lacking_ = false;  // in this round
  Lack lack_;
};

}  // namespace tutti::control
