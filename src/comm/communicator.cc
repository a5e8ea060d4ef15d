#include "comm/communicator.h"

#include <algorithm>
#include <map>
#include <thread>

#include "base/bytes.h"
#include "base/log.h"

namespace tutti::comm {

std::shared_ptr<Communicator> Communicator::join(const control::UniqueId& id, int rank, int size,
                                                 const Config& config) {
  control::JoinRequest request;
  request.id = id;
  request.rank = rank;
  request.size = size;
  request.card = topology::encode(topology::describeSelf());
  request.network = control::Network::fromEnvironment();
  request.deadline = Deadline::in(config.joinTimeout);
  return std::make_shared<Communicator>(control::Plane::join(request), config);
}

Communicator::Communicator(std::unique_ptr<control::Plane> plane, const Config& config)
    : config_(config),
      plane_(std::move(plane)),
      cards_(decodeCards()),
      registry_(link::builtinTransports(config.transports)),
      spins_(decideSpinning()),
      links_(*plane_, registry_, cards_, config_.connectTimeout),
      plans_(rank(), size(), config_, describeMachine(), groups(), links_),
      sends_(static_cast<size_t>(size())),
      receives_(static_cast<size_t>(size())) {}

std::vector<topology::Card> Communicator::decodeCards() const {
  std::vector<topology::Card> cards;
  for (int r = 0; r < size(); ++r) cards.push_back(topology::decodeCard(plane_->card(r)));
  return cards;
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

// Spinning pays only when every rank of this host has a core of its own.
bool Communicator::decideSpinning() const {
  const auto& self = cards_[static_cast<size_t>(rank())];
  const auto here = std::count_if(cards_.begin(), cards_.end(), [&](const auto& c) { return c.hostId == self.hostId; });
  return here <= static_cast<int64_t>(self.cores);
}

std::shared_ptr<Communicator> Communicator::split(int color, int key, const Config& config) {
  const Deadline deadline = Deadline::in(config.joinTimeout);
  const auto entries = plane_->allGather(Writer().value(color).value(key).take(), deadline);
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int r = 0; r < size(); ++r) {
    Reader reader(entries[static_cast<size_t>(r)]);
    const int theirColor = reader.value<int>();
    if (theirColor == color) members.emplace_back(reader.value<int>(), r);
  }
  std::sort(members.begin(), members.end());
  const bool joins = color >= 0;
  const bool leads = joins && members.front().second == rank();
  Bytes idBytes;
  if (leads) {
    const auto raw = control::encode(control::openRoot(control::Network::fromEnvironment(), deadline));
    idBytes.assign(raw.begin(), raw.end());
  }
  const auto ids = plane_->allGather(idBytes, deadline);
  if (!joins) return nullptr;
  control::RawUniqueId raw{};
  const Bytes& leaders = ids[static_cast<size_t>(members.front().second)];
  if (leaders.size() != raw.size()) throw Error(ErrorCode::kRemote, "split: the leading rank sent no meeting place");
  std::copy(leaders.begin(), leaders.end(), raw.begin());
  const auto self = std::find_if(members.begin(), members.end(), [this](auto& m) { return m.second == rank(); });
  return join(control::decode(raw), static_cast<int>(self - members.begin()), static_cast<int>(members.size()), config);
}

Turnstile& Communicator::turnstileFor(const Call& call) noexcept {
  if (call.collective != Collective::kSendRecv) return collectives_;
  return (call.sends ? sends_ : receives_)[static_cast<size_t>(call.root)];
}

Error Communicator::failure(const std::string& operation) const {
  {
    std::lock_guard lock(failureMutex_);
    if (failure_) return *failure_;
  }
  const auto remote = plane_->failure();
  const std::string cause = remote ? remote->text : "the communicator was stopped";
  return Error(ErrorCode::kRemote, fmt::format("{} during {}", cause, operation));
}

void Communicator::fail(const Error& error) noexcept {
  try {
    {
      std::lock_guard lock(failureMutex_);
      if (failure_) return;
      failure_ = error;
    }
    broken_.store(true, std::memory_order_release);
    log::info("{}", error.what());
    if (!plane_->failed().load()) plane_->abort(error.what());
  } catch (const std::exception&) {
    broken_.store(true, std::memory_order_release);
  }
}

void Communicator::abort(const std::string& reason) noexcept {
  try {
    fail(Error(ErrorCode::kRemote, reason));
  } catch (const std::exception&) {
    broken_.store(true, std::memory_order_release);
  }
}

bool Communicator::idle() const noexcept {
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
