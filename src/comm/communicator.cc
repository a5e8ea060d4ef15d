#include "comm/communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <thread>

#include "base/bytes.h"
#include "base/deadline_names.h"
#include "comm/agreement.h"
#include "comm/banner.h"
#include "comm/device_side.h"
#include "comm/dumper.h"
#include "comm/neighbours.h"
#include "join/last_call.h"
#include "process/log.h"

namespace tutti::comm {

namespace {

topology::Card describeSelf(const Config& config, const Network& network) {
  topology::Card card = topology::describeSelf();
  card.unixSockets = network.unixSockets;
  if (config.device < 0) return card;
  const auto device = device::openDevice(config.device);
  const auto words = std::bit_cast<std::array<uint64_t, 2>>(device->traits().uuid);
  card.device = config.device;
  card.gpu = words[0] ^ std::rotl(words[1], 1);
  card.gpuBlocks = device->freeBlocks();
  std::string why;
  card.gpuQueues = device->streamsWait(why) ? config.gpuQueues : 0;
  card.gpuEngine = static_cast<uint8_t>(config.engine);
  if (!why.empty()) log::info("{}", why);
  return card;
}

// All but who joins what.
control::JoinRequest requestFor(const Config& config, const Self& self, std::shared_ptr<const Recorder> recorder) {
  control::JoinRequest request;
  request.card = self.card;
  request.network = self.network;
  request.deadline = Deadline::in(config.joinTimeout);
  request.heartbeat = config.heartbeat;
  request.encrypt = config.encrypt;
  request.agreement = agreementOf(config);
  request.respond = respondFrom(std::move(recorder));
  return request;
}

std::shared_ptr<Communicator> make(std::unique_ptr<control::Plane> plane, std::shared_ptr<Recorder> recorder,
                                   const Config& config, const Network& network) {
  // In memory of its own: handles keep weak references for ever, which must not keep all of it.
  auto made = std::shared_ptr<Communicator>(new Communicator(std::move(plane), std::move(recorder), config));
  Neighbours::instance().add(made);
  if (!config.dumpDirectory.empty()) Dumper::instance().add(made);
  introduce(*made, network);
  return made;
}

}  // namespace

Self Self::find(const Config& config) {
  Self self{{}, Network::fromEnvironment(), {}};
  try {
    self.card = topology::encode(describeSelf(config, self.network));
  } catch (const Error& error) {
    self.lack = {error.code(), error.what()};
  }
  return self;
}

void Self::check() const {
  if (lack) throw Error(lack->code, lack->text);
}

std::shared_ptr<Communicator> Communicator::join(const control::UniqueId& id, int rank, int size, const Config& config,
                                                 const Self& self, const Cancelled& cancelled, const Begun& begun) {
  const auto recorder = std::make_shared<Recorder>();
  control::JoinRequest request = requestFor(config, self, recorder);
  request.id = id;
  request.rank = rank;
  request.size = size;
  if (self.lack)
    control::tellRoot(request, [&] { return fmt::format("rank {} could not join: {}", rank, self.lack->text); });
  self.check();
  constexpr std::chrono::milliseconds kLook(10);
  const control::Patience patience(request.deadline, cancelled, rank);
  auto plane = control::Plane::begin(request);
  if (begun) begun();
  while (!plane->awaitJoined(cancelled ? Deadline::in(kLook) : Deadline::never())) patience.check();
  return make(std::move(plane), recorder, config, self.network);
}

Communicator::Communicator(std::unique_ptr<control::Plane> plane, std::shared_ptr<Recorder> recorder,
                           const Config& config)
    : config_(config),
      plane_(std::move(plane)),
      recorder_(std::move(recorder)),
      cards_(decodeCards()),
      registry_(link::builtinTransports(config.transports)),
      spins_(topology::haveCoresOfTheirOwn(cards_, rank())),
      links_(*plane_, registry_, cards_, config_.connectTimeout),
      plans_(rank(), size(), config_, describeMachine(), groups(), links_),
      sends_(static_cast<size_t>(size())),
      receives_(static_cast<size_t>(size())) {
  recorder_->expect(size());
  const bool onGpus = std::ranges::any_of(cards_, [](const auto& card) { return card.device >= 0; });
  if (!onGpus) return;
  checkProcesses();
  device_ = std::make_unique<DeviceSide>(*plane_, links_, cards_, groups(), config_, *recorder_, deviceTroubles());
}

// Freeing memory of a GPU waits for all that runs there. That may be the kernel of another rank of this process, which
// waits for this one: it must hear first that this one has left.
void Communicator::leave() noexcept {
  if (device_) device_->end();
  plane_->leave();
}

Communicator::~Communicator() { leave(); }

const void* Communicator::addBuffer(const void* buffer, size_t bytes) {
  const void* const handle = registered_.add(buffer, bytes);
  if (device_) device_->windows().add(handle, {static_cast<const std::byte*>(buffer), bytes});
  return handle;
}

bool Communicator::endBuffer(const void* handle) {
  if (device_) device_->windows().remove(handle);
  return registered_.remove(handle);
}

DeviceTroubles Communicator::deviceTroubles() {
  return {[this](const device::Report& report) { fail(explain(report)); },
          [this](int peer, const std::string& text) {
            fail(Error(ErrorCode::kRemote, fmt::format("{} was cut off: {}", rankName(peer), text)));
          },
          [this](int peer, const std::string& what) {
            fail(Error(ErrorCode::kRemote, fmt::format("{} said of its registered buffers to {} what can not be ({}): "
                                                       "it is damaged, or not to be trusted",
                                                       rankName(peer), rankName(rank()), what)));
          },
          [this](const auto& now, bool overNetwork) { deviceWatch_.look(now, overNetwork); }};
}

// The slot may be left over from an earlier collective of the peer's: what does not match is then ours of that number.
Error Communicator::disagreement(link::Fingerprint mine, int peer, const link::Fingerprint& theirs,
                                 uint64_t bytes) const {
  const bool isMessage = static_cast<Collective>(mine.kindAndType >> 4) == Collective::kSendRecv;
  if (!isMessage && theirs.operation != mine.operation)
    if (const auto same = recorder_->collective(theirs.operation)) mine = same->fingerprint;
  if (mine != theirs) return mismatch(rankName(rank()), mine, rankName(peer), theirs);
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("counts do not match in {}: {} sent {} bytes more than {} expected", comm::describe(mine),
                           rankName(peer), bytes, rankName(rank())));
}

// What a kernel met, in words.
Error Communicator::explain(const device::Report& report) const {
  const auto nameCall = [&](const link::Fingerprint& mark) { return comm::describe(mark); };
  const std::string self = rankName(rank()), peer = rankName(report.peer);
  if (report.trouble == device::Trouble::kMismatch)
    return disagreement(report.mine, report.peer, report.theirs, report.bytes);
  if (report.trouble == device::Trouble::kBytes)
    return Error(ErrorCode::kInvalidUsage,
                 fmt::format("counts do not match in {}: {} sent {} bytes, {} expected {}", nameCall(report.mine), peer,
                             report.bytes, self, report.expected));
  if (report.trouble == device::Trouble::kSpot)
    return Error(
        ErrorCode::kRemote,
        fmt::format("{} points {} at {} bytes outside of the buffer that it has shared, in {}: it is damaged, or "
                    "not to be trusted",
                    peer, self, report.bytes, nameCall(report.mine)));
  if (report.trouble == device::Trouble::kNotOpened)
    return Error(
        ErrorCode::kRemote,
        fmt::format("{} speaks of a buffer that {} has neither mapped nor opened to it, in {}: it is damaged, or "
                    "not to be trusted",
                    peer, self, nameCall(report.mine)));
  return Error(ErrorCode::kTimeout,
               fmt::format("{} did not finish within {} ms, the {} of {}, which waits on its GPU for {}",
                           nameCall(report.mine), config_.operationTimeout.count(), kOperationDeadline, self, peer));
}

std::vector<topology::Card> Communicator::decodeCards() const {
  std::vector<topology::Card> cards;
  for (int r = 0; r < size(); ++r) cards.push_back(topology::decodeCard(plane_->card(r)));
  return cards;
}

// In which process a rank is, its card says, and ranks of one process follow each other's addresses. So nobody gets by
// whose card names this process and who has not joined in it: pools of GPUs' memory and links of kernels rely
// on that. (On the host nothing is followed but a ticket, which cannot be guessed.) It is an error, and not just
// another process, because the others believe that card, and ranks that see cards differently would choose different
// engines.
void Communicator::checkProcesses() const {
  std::set<uint64_t> processes;
  for (const auto& card : cards_) processes.insert(card.processToken);
  if (processes.size() == cards_.size()) return;  // on all ranks, which have the same cards
  plane_->allGather({}, Deadline::in(config_.joinTimeout));
  const uint64_t own = cards_[static_cast<size_t>(rank())].processToken;
  for (int r = 0; r < size(); ++r) {
    if (cards_[static_cast<size_t>(r)].processToken != own || plane_->isHere(r)) continue;
    const Error error(ErrorCode::kRemote,
                      fmt::format("{} says that it is in the process of {}, which knows nothing of it: it is damaged, "
                                  "or not to be trusted",
                                  rankName(r), rankName(rank())));
    tell(control::Stop::kError, error);
    throw error;
  }
}

// Hosts, numbered in the order of their lowest rank: the same on every rank.
std::vector<int> Communicator::hostNumbers() const {
  std::map<uint64_t, int> numbers;
  std::vector<int> hosts;
  for (const auto& card : cards_)
    hosts.push_back(numbers.emplace(card.hostId, static_cast<int>(numbers.size())).first->second);
  return hosts;
}

std::vector<int> Communicator::groups() const {
  if (config_.groupSize == 0) return hostNumbers();
  std::vector<int> groups;
  for (int r = 0; r < size(); ++r) groups.push_back(r / config_.groupSize);
  return groups;
}

plan::Machine Communicator::describeMachine() const {
  plan::Machine machine;
  machine.ranks = size();
  machine.slotRoom = link::Edge{}.slotBytes;
  std::map<int, int> ranksOf;
  std::map<int, uint32_t> coresOf;
  const std::vector<int> hosts = groups();
  for (size_t r = 0; r < hosts.size(); ++r) {
    ++ranksOf[hosts[r]];
    coresOf[hosts[r]] = std::max(coresOf[hosts[r]], cards_[r].cores);
  }
  machine.hosts = static_cast<int>(ranksOf.size());
  for (const auto& [host, ranks] : ranksOf) {
    machine.ranksPerHost = std::max(machine.ranksPerHost, ranks);
    machine.ranksPerCore = std::max(machine.ranksPerCore, double(ranks) / std::max(1u, coresOf[host]));
  }
  // The costs of the first pair of each kind stand for all of them.
  const auto costOf = [this](size_t a, size_t b) {
    const auto candidates = registry_.candidates(cards_[a], cards_[b]);
    if (candidates.empty()) return plan::LinkCost{};
    const link::Reach reach = candidates.front()->reach(cards_[a], cards_[b]);
    return plan::LinkCost{reach.latencyUs, reach.bandwidthGBs};
  };
  for (size_t r = 1; r < hosts.size(); ++r)
    if (hosts[r] == hosts[0]) {
      machine.local = costOf(0, r);
      break;
    }
  for (size_t r = 1; r < hosts.size(); ++r)
    if (hosts[r] != hosts[0]) {
      machine.remote = costOf(0, r);
      break;
    }
  return machine;
}

std::shared_ptr<Communicator> Communicator::split(int color, int key, const Config& config, const Begun& begun) try {
  const Deadline deadline = Deadline::in(config.joinTimeout);
  const Recorder::Splitting here(*recorder_);
  const auto entries = plane_->allGather(Writer().value(color).value(key).take(), deadline);
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int r = 0; r < size(); ++r) {
    Reader reader(entries[static_cast<size_t>(r)]);
    const int theirColor = reader.value<int>();
    if (theirColor == color) members.emplace_back(reader.value<int>(), r);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& [theirKey, theirRank] : members) ranks.push_back(theirRank);
  const bool joins = color >= 0;
  const bool leads = joins && ranks.front() == rank();
  const auto told =
      plane_->allGather(leads ? plane_->openChildRoot(Network::fromEnvironment(), deadline, ranks) : Bytes{}, deadline);
  if (!joins) return nullptr;
  const int leader = ranks.front();
  const auto place = static_cast<size_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  return join(
      plane_->childId(told[static_cast<size_t>(leader)], leader, place), static_cast<int>(place),
      static_cast<int>(ranks.size()), config, Self::find(config), [this] { return broken(); }, begun);
} catch (const Error&) {
  if (broken()) throw failure("split");
  throw;
}

std::shared_ptr<Communicator> Communicator::shrink(const Config& config) {
  waitUntilIdle();
  const auto recorder = std::make_shared<Recorder>();
  const Self self = Self::find(config);
  self.check();
  return make(plane_->shrink(requestFor(config, self, recorder)), recorder, config, self.network);
}

Turnstile& Communicator::turnstileFor(const Call& call) noexcept {
  if (call.collective != Collective::kSendRecv) return collectives_;
  return (call.sends ? sends_ : receives_)[static_cast<size_t>(call.root)];
}

namespace {

// Copies of an exception share their text, and count who does inside the standard library, where ThreadSanitizer does
// not see it. What crosses from thread to thread has a text of its own.
Error ownCopy(const Error& error) { return Error(error.code(), std::string(error.what())); }

}  // namespace

bool Communicator::endedWithProcess() const {
  std::lock_guard lock(failureMutex_);
  const auto told = failure_ ? std::nullopt : plane_->failure();
  return told && told->rank == rank() && told->stop == control::Stop::kDeath;
}

Error Communicator::failure(const std::string& operation) const {
  {
    std::lock_guard lock(failureMutex_);
    if (failure_) return ownCopy(*failure_);
  }
  const auto remote = plane_->failure();
  if (!remote) return Error(ErrorCode::kRemote, fmt::format("the communicator was stopped during {}", operation));
  // A mismatch or an expired deadline says itself what was going on, on this rank too.
  if (remote->code != ErrorCode::kRemote) return Error(remote->code, remote->text);
  return Error(ErrorCode::kRemote, fmt::format("{}, during {}", remote->text, operation));
}

namespace {

// For what must not keep what follows it from being done.
template <class Body>
void tryTo(Body body) noexcept {
  try {
    body();
  } catch (const std::exception&) {  // no memory, or no thread
  }
}

}  // namespace

uint64_t Communicator::answersOf(int rank) const {
  const auto answer = lastAnswer(rank);
  return answer ? answer->count : 0;
}

// The others are told first: nothing that goes wrong with the record may keep it from them. An abort is told in any
// case: it also ends what goes on after a failure.
void Communicator::stop(control::Stop how, const Error& error) noexcept {
  bool first = true;
  tryTo([&] { first = noteFailure(error); });
  broken_.store(true, std::memory_order_release);
  if (how == control::Stop::kAbort || (first && !plane_->failed().load())) tell(how, error);
  if (!first) return;
  log::info("{}", error.what());
  tryTo([&] { leaveRecord(error); });
}

void Communicator::leaveRecord(const Error& why) {
  if (config_.dumpDirectory.empty() || !claimDump()) return;
  try {
    Dumper::instance().request(shared_from_this(), why.what());
  } catch (const std::exception&) {  // no memory: the writer looks for failures as well, and may find some
    dumped_.store(false, std::memory_order_relaxed);
    throw;
  }
}

bool Communicator::noteFailure(const Error& error) {
  std::lock_guard lock(failureMutex_);
  if (failure_) return false;
  failure_.emplace(ownCopy(error));
  return true;
}

void Communicator::tell(control::Stop how, const Error& error) const noexcept {
  // Errors that are everybody's are told as they are; those of this rank as what happened to it.
  const bool shared =
      how != control::Stop::kError || error.code() == ErrorCode::kInvalidUsage || error.code() == ErrorCode::kTimeout;
  const ErrorCode code = shared ? error.code() : ErrorCode::kRemote;
  std::string text = kNoMemory;
  tryTo([&] { text = shared ? error.what() : fmt::format("{} gave up: {}", rankName(rank()), error.what()); });
  plane_->fail({rank(), how, code, std::move(text)});
}

bool Communicator::idle() const noexcept {
  if (device_) return device_->idle();
  const auto isIdle = [](const Turnstile& turnstile) { return turnstile.idle(); };
  return collectives_.idle() && std::all_of(sends_.begin(), sends_.end(), isIdle) &&
         std::all_of(receives_.begin(), receives_.end(), isIdle);
}

void Communicator::waitUntilIdle() const noexcept {
  while (!idle()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

Stats Communicator::stats() const {
  Stats stats;
  stats.memoryBytes = links_.memoryBytes() + plans_.memoryBytes();
  stats.connectedPeers = links_.connectedPeers();
  stats.operations = collectives_.passed();
  for (const auto* list : {&sends_, &receives_})
    for (const Turnstile& turnstile : *list) stats.operations += turnstile.passed();
  if (device_) {
    stats.memoryBytes += device_->memoryBytes();
    stats.operations += device_->calls();
    stats.directSlots = device_->directSlots();
    stats.connectedPeers = static_cast<uint64_t>(size() - 1);
    stats.lastAlgorithm = nameOf(device_->lastAlgorithm());
    const std::string bridges = links_.transportNames();
    stats.lastTransports = !device_->reachesSome() ? bridges : bridges.empty() ? "p2p" : "p2p," + bridges;
    return stats;
  }
  stats.lastAlgorithm = nameOf(plans_.lastAlgorithm());
  stats.lastTransports = links_.transportNames();
  return stats;
}

std::string Communicator::rankName(int rank) const {
  if (rank < 0 || rank >= size()) return "a rank";
  const auto& card = cards_[static_cast<size_t>(rank)];
  return fmt::format("rank {} (host {}, pid {})", rank, card.hostName, card.pid);
}

}  // namespace tutti::comm
