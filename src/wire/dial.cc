#include "wire/dial.h"

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "job/root_name.h"
#include "net/network.h"
#include "net/socket.h"

namespace tutti::control {
namespace {

constexpr std::chrono::milliseconds kStagger(50), kShortestPause(2), kLongestPause(250);
// A Unix socket that lets callers in has its process behind it, which is no faster to be reached by another way: it has
// many callers, or too few cores, and to be called over TCP as well would cost it most of all.
constexpr std::chrono::milliseconds kUnixStagger(1000);
constexpr std::chrono::seconds kAttemptTime(5);

// Of a call that the system there has taken, and perhaps nobody else.
const char* silenceOf(const Line& line) noexcept {
  return line.helloSteps() == 0 ? "no answer"
                                : "no answer, though somebody listens: that process is stopped or busy, or has no file "
                                  "descriptor left for the call (ulimit -n)";
}

void append(std::string& list, const std::string& place, const std::string& why) {
  list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", place, why);
}

}  // namespace

Dial::Pause Dial::longer(Pause pause) noexcept { return std::clamp<Pause>(pause * 2, kShortestPause, kLongestPause); }

std::shared_ptr<Dial> Dial::start(Reactor& reactor, Target target, Won won, Lost lost, Pause pause) {
  target.addresses = asSeenFromHere(target.addresses);
  std::shared_ptr<Dial> dial(new Dial(reactor, std::move(target), std::move(won), std::move(lost)));
  // Not from within the caller's frame: it has yet to keep the dial that `won` and `lost` may ask for.
  dial->pause_ = reactor.after(pause, [dial] { dial->startRound(); });
  return dial;
}

void Dial::startRound() {
  started_ = running_ = 0;
  unixNames_ = target_.unixNames;
  if (const auto left = rootNameIn(target_.folder, target_.context.job)) unixNames_.insert(unixNames_.begin(), *left);
  attempts_.assign(places(), {});
  reasons_.clear();
  refused_ = unproven_ = left_ = lacking_ = false;
  next();
}

UniqueFd Dial::open(size_t place) noexcept {
  if (overUnix(place)) return dialUnix(unixNames_[place]);
  return dialTcp(target_.addresses[place - unixNames_.size()]);
}

std::string Dial::nameOf(size_t place) const {
  if (overUnix(place)) return "Unix socket @" + unixNames_[place];
  return toString(target_.addresses[place - unixNames_.size()]);
}

// Places that fail at once (nobody there, no route) make way for the next without a pause.
void Dial::next() {
  const auto self = shared_from_this();
  reactor_.cancel(stagger_);
  while (!over_ && started_ < places()) {
    const size_t place = started_++;
    attempt(place);
    if (attempts_[place].line) break;
  }
  if (over_) return;
  if (started_ < places())
    stagger_ = reactor_.after(overUnix(started_ - 1) ? kUnixStagger : kStagger, [self] { self->next(); });
  else if (running_ == 0)
    endRound();
}

void Dial::attempt(size_t place) {
  UniqueFd fd = open(place);
  if (!fd) {
    noteError(place, errno);
    append(reasons_, nameOf(place), errnoText(errno));
    return;
  }
  const auto self = shared_from_this();
  Line::Events events;
  events.ready = [self, place] { self->succeeded(place); };
  events.closed = [self, place](const std::string& why) { self->failed(place, why); };
  Attempt& one = attempts_[place];
  one.line = Line::open(reactor_, std::move(fd), Handshake::Role::kClient, target_.context, std::move(events));
  one.timer = reactor_.after(kAttemptTime, [self, place] {
    const auto line = self->attempts_[place].line;
    line->close();
    self->failed(place, silenceOf(*line));
  });
  ++running_;
}

// A Unix socket's name means something on its own host only: it tells nothing when there are addresses as well.
void Dial::noteError(size_t place, int error) noexcept {
  lacking_ = lacking_ || Lack::isOne(error);
  if (error == ECONNREFUSED && overUnix(place) && unixNames_[place] == hungUp_) left_ = true;
  if (error == ECONNREFUSED && (!overUnix(place) || target_.addresses.empty())) refused_ = true;
}

void Dial::failed(size_t place, const std::string& why) {
  reactor_.cancel(attempts_[place].timer);
  if (const auto& line = attempts_[place].line) {
    noteError(place, line->connectError());
    unproven_ = unproven_ || line->unproven();
    if (overUnix(place) && line->unproven()) hungUp_ = unixNames_[place];
  }
  append(reasons_, nameOf(place), why);
  --running_;
  if (!over_) next();
}

void Dial::succeeded(size_t place) {
  const auto self = shared_from_this();
  const auto line = std::move(attempts_[place].line);
  reactor_.cancel(attempts_[place].timer);
  attempts_[place] = {};
  cancel();
  line->setEvents({});
  won_(line);
}

void Dial::endRound() {
  const auto self = shared_from_this();
  lacking_ ? lack_.begins() : lack_.ends();
  lost_(reasons_.empty() ? "no address is known" : reasons_);
  if (over_) return;
  lastPause_ = longer(lastPause_);
  pause_ = reactor_.after(lastPause_, [self] { self->startRound(); });
}

std::string Dial::soFar() const {
  std::string all = reasons_;
  for (size_t place = 0; place < attempts_.size(); ++place)
    if (const auto& line = attempts_[place].line; line && line->isOpen()) append(all, nameOf(place), silenceOf(*line));
  return all;
}

void Dial::cancel() noexcept {
  over_ = true;
  reactor_.cancel(stagger_);
  reactor_.cancel(pause_);
  for (Attempt& one : attempts_) {
    reactor_.cancel(one.timer);
    if (one.line) one.line->close();
  }
  attempts_.clear();
}

}  // namespace tutti::control
