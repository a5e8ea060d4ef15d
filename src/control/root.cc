#include "control/root.h"

#include "base/log.h"
#include "control/tree.h"

namespace tutti::control {
namespace {

constexpr std::chrono::seconds kPartingTime(2);
constexpr int kMaxSize = 1 << 24;
constexpr std::chrono::milliseconds kMaxHeartbeat = std::chrono::hours(24);

}  // namespace

std::string rootUnixName(uint64_t job) { return fmt::format("tutti-root-{:016x}", job); }

HandshakeContext rootContext(const UniqueId& id) { return {id.secret, id.job, id.job, Encryption::kAsCalled}; }

RootPlace anyRootPlace() {
  RootPlace place;
  fillRandom(place.id.secret.data(), place.id.secret.size());
  place.id.job = randomNumber();
  return place;
}

UniqueId openRoot(const Network& network, Deadline lifetime) { return openRootAt(anyRootPlace(), network, lifetime); }

UniqueId openRootAt(const RootPlace& place, const Network& network, Deadline lifetime) {
  return startRoot(place, network, lifetime)->id();
}

std::shared_ptr<Root> startRoot(const RootPlace& place, const Network& network, Deadline lifetime) {
  auto root = std::make_shared<Root>(place, network, lifetime);
  Keeper::instance().start(root);
  return root;
}

Listener::Request Root::listenRequest(const RootPlace& place, const Network& network) {
  return {rootContext(place.id), rootUnixName(place.id.job), network, place.port, place.tcp};
}

Root::Root(const RootPlace& place, const Network& network, Deadline lifetime)
    : listener_(reactor_, listenRequest(place, network),
                [this](const std::shared_ptr<Line>& line, Frame& first) { welcome(line, first); }),
      id_(place.id),
      lifetime_(lifetime) {
  id_.addresses = listener_.endpoint().addresses;
}

void Root::run() {
  reactor_.after(lifetime_.left(), [this] {
    if (!refused_ && size_ > 0 && placed_ < size_)
      refuse(ErrorCode::kTimeout, fmt::format("the root's time is over; missing: {}", nameRanks(missing())));
    reactor_.stop();
  });
  reactor_.run();
}

void Root::halt() {
  reactor_.post([this] { reactor_.stop(); });
}

void Root::welcome(const std::shared_ptr<Line>& line, Frame& first) try {
  if (static_cast<Kind>(first.type) != Kind::kHello) return line->close();
  Hello hello = decodeHello(first.payload);
  if (refused_) return tell(line, *refused_);
  if (const auto objection = objectionTo(hello, line->peerEncrypts())) {
    tell(line, *objection);
    return refuse(objection->code, objection->text);
  }
  seat(line, std::move(hello));
} catch (const Error& e) {
  log::warn("the root dropped {}: {}", line->peer(), e.what());
  line->close();
}

std::optional<Refusal> Root::objectionTo(const Hello& hello, bool encrypts) const {
  const int rank = hello.person.rank;
  if (hello.size < 1 || hello.size > kMaxSize || rank < 0 || rank >= hello.size)
    return Refusal{ErrorCode::kInvalidUsage,
                   fmt::format("{} wants to join a job of size {}: ranks go from 0 to size - 1", describe(hello.person),
                               hello.size)};
  if (size_ != 0 && hello.size != size_)
    return Refusal{
        ErrorCode::kInvalidUsage,
        fmt::format("the ranks disagree on the size of the job: {} says {}, {} says {}. Start all with one size",
                    describe(guests_.begin()->second.person), size_, describe(hello.person), hello.size)};
  if (const auto at = guests_.find(rank); at != guests_.end())
    return Refusal{
        ErrorCode::kInvalidUsage,
        fmt::format("two processes claim rank {}: host {}, pid {} and host {}, pid {}. Give each its own number", rank,
                    at->second.person.host, at->second.person.pid, hello.person.host, hello.person.pid)};
  if (!guests_.empty() && guests_.begin()->second.encrypts != encrypts) {
    const Person& other = guests_.begin()->second.person;
    return Refusal{
        ErrorCode::kInvalidUsage,
        fmt::format("the ranks disagree on encryption: {} has it on (TUTTI_ENCRYPT=1), {} has it off. Set it "
                    "on every rank or on none",
                    describe(encrypts ? hello.person : other), describe(encrypts ? other : hello.person))};
  }
  return std::nullopt;
}

void Root::seat(const std::shared_ptr<Line>& line, Hello hello) {
  size_ = hello.size;
  const int rank = hello.person.rank;
  guests_[rank] = {std::move(hello.person), line, line->peerEncrypts(), false, false};
  Line::Events events;
  events.frame = [this, rank](Frame& frame) { onFrame(rank, frame); };
  events.closed = [this, rank](const std::string& why) { onGone(rank, why); };
  line->setEvents(std::move(events));
  if (!pulse_) pulse_.emplace(reactor_, std::min(kMaxHeartbeat, std::chrono::milliseconds(hello.heartbeatMs)));
  pulse_->watch(line, [this, rank](const std::string& how) { onSilence(rank, how); });
  reactor_.after(std::chrono::milliseconds(std::max<int64_t>(0, hello.leftMs)),
                 [this, rank, ms = hello.leftMs] { onDeadline(rank, ms); });
  // Nobody else is to come: the address is free for the next job before anyone can have joined this one.
  if (guests_.size() == static_cast<size_t>(size_)) listener_.close();
  place(rank);
  for (const int side : {0, 1}) place(tree::childOf(rank, side));
}

// A rank whose parent has yet to come is placed when that one comes.
void Root::place(int rank) {
  const auto at = guests_.find(rank);
  if (at == guests_.end() || at->second.placed) return;
  Place answer;
  if (rank > 0) {
    const auto parent = guests_.find(tree::parentOf(rank));
    if (parent == guests_.end()) return;
    answer.parent = parent->second.person;
  }
  at->second.placed = true;
  ++placed_;
  at->second.line->send(Kind::kPlace, encode(answer));
}

void Root::onFrame(int rank, Frame& frame) {
  Guest& guest = guests_.at(rank);
  if (static_cast<Kind>(frame.type) == Kind::kDone && !guest.done) {
    guest.done = true;
    guest.line->close();
    if (++done_ == size_) reactor_.stop();
  } else if (static_cast<Kind>(frame.type) == Kind::kRefuse) {
    std::string why = "it gave up";
    try {
      why = decodeRefusal(frame.payload).text;
    } catch (const Error&) {  // the reason is lost, the fact is not
    }
    onGone(rank, why);
  }
}

void Root::onGone(int rank, const std::string& why) {
  Guest& guest = guests_.at(rank);
  guest.line->close();
  if (!guest.done) refuse(ErrorCode::kRemote, fmt::format("{} left while joining: {}", describe(guest.person), why));
  endIfIdle();
}

void Root::onSilence(int rank, const std::string& how) {
  Guest& guest = guests_.at(rank);
  const std::string text = fmt::format("{}, while joining, {}", describe(guest.person), how);
  guest.line->send(Kind::kRefuse, encode(Refusal{ErrorCode::kRemote, text}));
  guest.line->close();
  refuse(ErrorCode::kRemote, text);
}

std::vector<int> Root::missing() const {
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r)
    if (!guests_.contains(r)) ranks.push_back(r);
  return ranks;
}

void Root::onDeadline(int rank, int64_t afterMs) {
  if (refused_ || guests_.at(rank).done) return;
  const auto absent = missing();
  refuse(ErrorCode::kTimeout,
         absent.empty()
             ? fmt::format("all {} ranks came, but the tree between them did not stand within {} ms", size_, afterMs)
             : fmt::format(
                   "{} of {} ranks came within the {} ms that rank {} waited; missing: {}. Look for their processes, "
                   "and whether they reach the root",
                   guests_.size(), size_, afterMs, rank, nameRanks(absent)));
}

void Root::refuse(ErrorCode code, const std::string& text) {
  if (refused_) return;
  refused_ = Refusal{code, text};
  for (auto& [rank, guest] : guests_)
    if (guest.line->isOpen()) tell(guest.line, *refused_);
  endIfIdle();
}

void Root::tell(const std::shared_ptr<Line>& line, const Refusal& refusal) {
  line->setEvents({});
  line->send(Kind::kRefuse, encode(refusal));
  ++parting_;
  line->finish(kPartingTime, [this] {
    --parting_;
    endIfIdle();
  });
}

// After a refusal the root stays for those who have yet to come, as long as it knows that there are any.
void Root::endIfIdle() {
  if (refused_ && parting_ == 0 && size_ > 0 && missing().empty()) reactor_.stop();
}

}  // namespace tutti::control
