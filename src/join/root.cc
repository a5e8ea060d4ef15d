#include "join/root.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/deadline_names.h"
#include "base/limits.h"
#include "job/ranks.h"
#include "job/remedies.h"
#include "join/open_root.h"
#include "join/tree.h"
#include "join/used_jobs.h"
#include "net/network.h"
#include "process/log.h"
#include "process/process_object.h"

namespace tutti::control {
namespace {

constexpr std::chrono::milliseconds kMaxHeartbeat = std::chrono::hours(24);
// Ranks that look for the root call it several times in a second.
constexpr std::chrono::seconds kLastCalls(1);
constexpr int64_t kNobody = 1;  // a moment that has passed
// Of those who come after a refusal, and hear of it: beyond as many who come calls again.
constexpr size_t kLeastParting = 16, kMostParting = 512;

}  // namespace

HandshakeContext rootContext(const UniqueId& id) { return {id.secret, id.job, id.job, Encryption::kAsCalled}; }

RootPlace anyRootPlace() {
  RootPlace place;
  fillRandom(place.id.secret.data(), place.id.secret.size());
  place.id.job = randomNumber();
  return place;
}

UniqueId openRoot(const Network& network, Deadline lifetime) { return openRootAt(anyRootPlace(), network, lifetime); }

UniqueId openRootHere(const Network& network, Deadline lifetime) {
  RootPlace place = anyRootPlace();
  place.id.place = "in this process";
  return openRootAt(place, network, lifetime);
}

UniqueId openRootAt(const RootPlace& place, const Network& network, Deadline lifetime) {
  const auto root = std::make_shared<Root>(place, network, lifetime);
  UniqueId id = root->id();  // while nobody has to end it, should there be no memory
  start(root);
  return id;
}

namespace {

// One of a process: those that run in it. Any thread.
class RootsHere {
 public:
  void add(const std::shared_ptr<Root>& root) {
    std::lock_guard lock(mutex_);
    std::erase_if(roots_, [](const auto& one) { return one.expired(); });
    roots_.push_back(root);
  }
  std::shared_ptr<Root> of(uint64_t job) {
    std::lock_guard lock(mutex_);
    for (auto at = roots_.rbegin(); at != roots_.rend(); ++at)  // jobs that meet at one place have one number
      if (auto root = at->lock(); root && root->id().job == job) return root;
    return nullptr;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<std::weak_ptr<Root>> roots_;
};

}  // namespace

void start(const std::shared_ptr<Root>& root) {
  ofThisProcess<RootsHere>().add(root);
  BackgroundThreads::instance().start(root);
}

std::shared_ptr<Root> startRoot(const RootPlace& place, const Network& network, Deadline lifetime) {
  auto root = std::make_shared<Root>(place, network, lifetime);
  start(root);
  return root;
}

void closeRootHere(uint64_t job) noexcept {
  if (const auto root = ofThisProcess<RootsHere>().of(job)) root->halt();
}

void awaitLastCallsHere(uint64_t job, const std::function<bool()>& cancelled) noexcept try {
  constexpr std::chrono::milliseconds kLook(1), kUntilToldItself(100);
  const Deadline told = Deadline::in(kUntilToldItself);
  const auto isWorthIt = [&] {
    const auto root = ofThisProcess<RootsHere>().of(job);
    return root && (root->hasRefused() ? root->tellsStill() : !told.passed());
  };
  while (isWorthIt() && !(cancelled && cancelled())) std::this_thread::sleep_for(kLook);
} catch (const std::exception&) {  // no memory to look for it
}

bool tellRootHere(uint64_t job, int rank, int size, const std::function<std::string()>& why) noexcept {
  try {
    const auto root = ofThisProcess<RootsHere>().of(job);
    if (root) root->giveUp(rank, size, why());
    return root != nullptr;
  } catch (const std::exception& e) {
    log::warn("the other ranks could not be told: {}", e.what());
    return true;
  }
}

// One that has come has a line of its own to say so over: this is of another job that met here before.
void Root::giveUp(int rank, int size, const std::string& why) {
  reactor_.post([this, rank, size, why] {
    if (pendingRanks_.contains(rank)) return;
    if (size_ == 0 && size > 1 && size <= kMaxRanks) size_ = size;
    givenUp_ = givenUp_ || !refused_;
    ++heard_;
    account(rank);
    refuse(ErrorCode::kRemote, why);
    endIfIdle();
  });
}

// The name that everybody can work out comes first: of two jobs of one user that meet at one place one gets it.
Listener::Request Root::listenRequest(const RootPlace& place, const Network& network) const {
  std::vector<std::string> names{rootUnixName(place.id.job)};
  if (!name_.text().empty()) names.push_back(name_.text());
  return {rootContext(place.id), std::move(names), network, place.port, place.tcp};
}

Root::Root(const RootPlace& place, const Network& network, Deadline lifetime)
    : name_(place.id.folder, place.id.job),
      listener_(reactor_, listenRequest(place, network),
                [this](const std::shared_ptr<Line>& line, Frame& first) { welcome(line, first); }),
      id_(place.id),
      doubt_(place.doubt),
      reserve_(::eventfd(0, EFD_CLOEXEC)) {
  id_.addresses = listener_.endpoint().addresses;
  if (isPublic(id_)) fillRandom(drawn_.data(), drawn_.size());
  listener_.whenStarved([this](int error) {
    refuse(ErrorCode::kRemote, fmt::format("{} can let no further rank in: {}", ownProcess(), errnoText(error)));
  });
  // By who makes it: for lack of memory there is no root then, and not one that ends at once.
  reactor_.after(lifetime.left(), [this] {
    if (!refused_ && size_ > 0 && placed_ < size_)
      refuse(ErrorCode::kTimeout, fmt::format("{} of {} ranks came: {}; missing: {}. {}{}", pendingRanks_.size(), size_,
                                              rootIsOver(id_), nameRanks(missing()), lookForThem(id_), suspicion()));
    reactor_.stop();
  });
}

Root::~Root() {
  name_.withdraw();
  wipe(drawn_.data(), drawn_.size());
}

void Root::run() {
  reactor_.run([this](const std::string& what) {
    refuse(ErrorCode::kSystem, fmt::format("{} cannot lead the ranks together: {}", ownProcess(), what));
  });
}

std::string Root::ownProcess() const {
  return fmt::format("{} (host {}, pid {})", rootProcess(id_), hostName(), ::getpid());
}

// Nobody will be here any more: why, those are to hear who are still on their way, and would look for it until their
// deadline.
void Root::hurry() {
  reactor_.post([this] {
    if (!refused_ && size_ == 0) return reactor_.stop();
    reactor_.after(kLastCalls, [this] { reactor_.stop(); });
    endIfIdle();
  });
}

void Root::halt() { reactor_.stop(); }

void Root::welcome(const std::shared_ptr<Line>& line, Frame& first) try {
  if (static_cast<Kind>(first.type) != Kind::kHello) return line->close();
  Hello hello = decodeHello(first.payload);
  if (!hello.mark.empty()) hello.mark = line->unwrap(hello.mark);
  if (refused_) return tellLate(line, hello.who.rank);
  if (const auto objection = objectionTo(hello, line->peerEncrypts())) {
    // Two who disagree on how many there are, or who is who: nobody knows who is yet to come.
    knowsWhoComes_ = size_ == 0 || (hello.size == size_ && !pendingRanks_.contains(hello.who.rank));
    ++heard_;
    tell(line, *objection);
    return refuse(objection->code, objection->text);
  }
  seat(line, std::move(hello));
} catch (const Error& e) {
  listener_.refuse(*line, e.what());
}

std::optional<Refusal> Root::objectionTo(const Hello& hello, bool encrypts) const {
  const int rank = hello.who.rank;
  if (const auto wrong = wrongPlace(rank, hello.size))
    return Refusal{ErrorCode::kInvalidUsage,
                   fmt::format("{} wants to join a job of size {}: {}", describe(hello.who), hello.size, *wrong)};
  if (const auto at = pendingRanks_.find(rank); at != pendingRanks_.end())
    return Refusal{
        ErrorCode::kInvalidUsage,
        fmt::format("two processes claim rank {}: host {}, pid {} and host {}, pid {}. {}", rank, at->second.who.host,
                    at->second.who.pid, hello.who.host, hello.who.pid, whenTwoAreOneRank(id_))};
  if (size_ != 0 && hello.size != size_)
    return Refusal{
        ErrorCode::kInvalidUsage,
        fmt::format("the ranks disagree on the size of the job: {} says {}, {} says {}. Start all with one size",
                    describe(pendingRanks_.begin()->second.who), size_, describe(hello.who), hello.size)};
  if (!pendingRanks_.empty() && pendingRanks_.begin()->second.encrypts != encrypts) {
    const RankAddress& other = pendingRanks_.begin()->second.who;
    return Refusal{
        ErrorCode::kInvalidUsage,
        fmt::format("the ranks disagree on encryption: {} has it on (TUTTI_ENCRYPT=1), {} has it off. Set it "
                    "on every rank or on none",
                    describe(encrypts ? hello.who : other), describe(encrypts ? other : hello.who))};
  }
  if (const std::string other = differenceOfSecrets(hello); !other.empty())
    return Refusal{
        ErrorCode::kInvalidUsage,
        fmt::format("the ranks disagree on {}: {}. Set the same on every rank, or on none", kSecretNames, other)};
  if (const std::string other = differenceFrom(hello); !other.empty())
    return Refusal{ErrorCode::kInvalidUsage,
                   fmt::format("the ranks disagree on settings: {}. Set them alike on every rank", other)};
  return std::nullopt;
}

// From the first one that came: "TUTTI_ALGO is ring on rank 0 (…) and tree on rank 1 (…)".
std::string Root::differenceFrom(const Hello& hello) const {
  std::string text;
  for (const Agreed& theirs : hello.agreement)
    for (const Agreed& first : first_.agreement)
      if (first.name == theirs.name && first.value != theirs.value)
        text += fmt::format("{}{} is {} on {} and {} on {}", text.empty() ? "" : "; ", first.name, first.value,
                            describe(first_.who), theirs.value, describe(hello.who));
  return text;
}

// Of what was given beside the id: "rank 0 (…) has one, rank 1 (…) has none".
std::string Root::differenceOfSecrets(const Hello& hello) const {
  if (pendingRanks_.empty() || hello.mark == first_.mark) return {};
  const bool both = !hello.mark.empty() && !first_.mark.empty();
  const Hello& one = first_.mark.empty() ? hello : first_;
  const Hello& other = first_.mark.empty() ? first_ : hello;
  return fmt::format("{} has one, {} has {}", describe(one.who), describe(other.who), both ? "another" : "none");
}

void Root::seat(const std::shared_ptr<Line>& line, Hello hello) {
  if (pendingRanks_.empty()) first_ = hello;
  size_ = hello.size;
  const int rank = hello.who.rank;
  pendingRanks_[rank] = {std::move(hello.who), hello.record, line, line->peerEncrypts(), false, false};
  Line::Events events;
  events.frame = [this, rank](Frame& frame) { onFrame(rank, frame); };
  events.closed = [this, rank](const std::string& why) { onGone(rank, why); };
  line->setEvents(std::move(events));
  if (!heartbeat_) heartbeat_.emplace(reactor_, std::min(kMaxHeartbeat, std::chrono::milliseconds(hello.heartbeatMs)));
  heartbeat_->watch(line, [this, rank](const std::string& how) { onSilence(rank, how); });
  reactor_.after(std::chrono::milliseconds(std::max<int64_t>(0, hello.leftMs)),
                 [this, rank, ms = hello.leftMs] { onDeadline(rank, ms); });
  const bool all = pendingRanks_.size() == static_cast<size_t>(size_);
  // Nobody else is to come: the address is free for the next job before anyone can have joined this one.
  if (all) {
    name_.withdraw();
    listener_.close();
  }
  place(rank);
  for (const int side : {0, 1}) place(tree::childOf(rank, side));
  if (all) tellDigest();
}

void Root::tellDigest() {
  std::vector<Digest> records;
  for (const auto& [rank, pendingRank] : pendingRanks_) records.push_back(pendingRank.record);
  const Digest digest = digestOfAll(records);
  const auto told = std::make_shared<const Bytes>(digest.begin(), digest.end());
  for (const auto& [rank, pendingRank] : pendingRanks_) pendingRank.line->send(Kind::kDigest, told);
}

// A rank whose parent has yet to come is placed when that one comes.
void Root::place(int rank) {
  const auto at = pendingRanks_.find(rank);
  if (at == pendingRanks_.end() || at->second.placed) return;
  Place answer{draw_, {}, {}};
  if (rank > 0) {
    const auto parent = pendingRanks_.find(tree::parentOf(rank));
    if (parent == pendingRanks_.end()) return;
    answer.parent = parent->second.who;
  }
  if (isPublic(id_)) answer.secret = at->second.line->wrap(drawn_);
  at->second.placed = true;
  ++placed_;
  at->second.line->send(Kind::kPlace, encode(answer));
}

void Root::onFrame(int rank, Frame& frame) {
  PendingRank& pendingRank = pendingRanks_.at(rank);
  if (static_cast<Kind>(frame.type) == Kind::kDone && !pendingRank.done) {
    pendingRank.done = true;
    pendingRank.line->close();
    if (++done_ < size_) return;
    reactor_.stop();
    UsedJobs::instance().note(id_.job);
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
  PendingRank& pendingRank = pendingRanks_.at(rank);
  pendingRank.line->close();
  if (!pendingRank.done)
    refuse(ErrorCode::kRemote, fmt::format("{} left while joining: {}", describe(pendingRank.who), why));
  endIfIdle();
}

void Root::onSilence(int rank, const std::string& how) {
  PendingRank& pendingRank = pendingRanks_.at(rank);
  const std::string text = fmt::format("{}, while joining, {}", describe(pendingRank.who), how);
  pendingRank.line->send(Kind::kRefuse, encode(Refusal{ErrorCode::kRemote, text}));
  pendingRank.line->close();
  refuse(ErrorCode::kRemote, text);
}

std::vector<int> Root::missing() const {
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r)
    if (!pendingRanks_.contains(r)) ranks.push_back(r);
  return ranks;
}

void Root::onDeadline(int rank, int64_t afterMs) {
  if (refused_ || pendingRanks_.at(rank).done) return;
  const auto absent = missing();
  const std::string limit = fmt::format("the {} ms that rank {} waited, by its {}", afterMs, rank, kJoinDeadline);
  refuse(ErrorCode::kTimeout,
         absent.empty()
             ? fmt::format("all {} ranks came, but the tree between them did not stand within {}", size_, limit)
             : fmt::format("{} of {} ranks came within {}; missing: {}. {}{}", pendingRanks_.size(), size_, limit,
                           nameRanks(absent), lookForThem(id_), suspicion()));
}

// Why ranks may be missing, as far as the root has seen anything of it.
std::string Root::suspicion() const {
  std::string text = doubt_.empty() ? "" : ". " + doubt_;
  if (!listener_.lastUnproven().empty())
    text += fmt::format(". {} did not know the secret of this job; if that was a rank: {}", listener_.lastUnproven(),
                        whenTheSecretDiffers(id_));
  return text;
}

void Root::refuse(ErrorCode code, const std::string& text) {
  if (refused_) return;
  tellsUntil_ = (Deadline::Clock::now() + kLastCalls).time_since_epoch().count();  // before anybody can have heard it
  refused_ = Refusal{code, text};
  heard_ += pendingRanks_.size();
  reserve_.reset();
  for (auto& [rank, pendingRank] : pendingRanks_)
    if (pendingRank.line->isOpen()) tell(pendingRank.line, *refused_);
  endIfIdle();
}

// Without the memory to tell it, that one sees that the root has gone, and the others hear of it all the same.
void Root::tell(const std::shared_ptr<Line>& line, const Refusal& refusal) noexcept {
  ++parting_;
  try {
    line->setEvents({});
    line->send(Kind::kRefuse, encode(refusal));
    line->finish([this] {
      --parting_;
      endIfIdle();
    });
  } catch (const std::exception&) {
    --parting_;
    line->close();
  }
}

void Root::tellLate(const std::shared_ptr<Line>& line, int rank) {
  if (static_cast<size_t>(parting_) >= quarterOfFiles(kLeastParting, kMostParting)) return line->close();
  ++heard_;
  account(rank);
  tell(line, *refused_);
}

// Where ranks have given up, each speaks for itself; after another refusal two may have come in the name of one.
void Root::account(int rank) {
  if (givenUp_ && rank >= 0 && rank < size_) accounted_.insert(rank);
}

// Asked where a line has parted, which takes no memory.
bool Root::awaitsAnybody() const noexcept {
  for (int rank = 0; rank < size_; ++rank)
    if (!pendingRanks_.contains(rank) && !accounted_.contains(rank)) return true;
  return size_ == 0;
}

// After a refusal the root stays for those who have yet to come, as long as it knows that there are any.
void Root::endIfIdle() noexcept {
  if (!refused_ || parting_ != 0) return;
  if (knowsWhoComes_ && size_ > 0 && heard_ >= static_cast<size_t>(size_)) tellsUntil_ = kNobody;
  if (!awaitsAnybody()) reactor_.stop();
}

bool Root::hasRefused() const noexcept { return tellsUntil_ != 0; }

bool Root::tellsStill() const noexcept { return Deadline::Clock::now().time_since_epoch().count() < tellsUntil_; }

}  // namespace tutti::control
