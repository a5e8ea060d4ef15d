#include "faults/support/draw.h"

#include <algorithm>
#include <iterator>

namespace tutti::faults {

int CommunicatorSpec::colorOf(int rank) const noexcept {
  const auto drawn = static_cast<int>(mix(salt, 1, static_cast<uint64_t>(rank)) % 5);
  return drawn == 4 ? TUTTI_SPLIT_NOCOLOR : drawn % 2;
}

std::string Draw::drawTransports(const std::string& variant) {
  constexpr const char* kMixed[] = {"p2p", "shm", "tcp", "shm,tcp"};
  constexpr const char* kFar[] = {"shm", "tcp", "p2p,shm,tcp"};
  if (variant == "mix") return kMixed[below(std::size(kMixed))];
  if (variant == "processes" || variant == "mixed") return kFar[below(std::size(kFar))];
  return variant;
}

Draw::Draw(uint64_t seed, const std::string& variant) : random_(mix(seed, 0x5e55)) {
  constexpr const char* kAlgorithms[] = {"ring",  "tree",   "oneshot",      "twoshot",  "halving",
                                         "bruck", "direct", "hierarchical", "doubling", "twopass"};
  session_.ranks = static_cast<int>(2 + below(7));
  if (variant == "mixed") session_.ranks = std::max(session_.ranks, 3);
  session_.streams = static_cast<int>(1 + below(3));
  if (variant == "processes") session_.processes = session_.ranks;
  if (variant == "mixed") session_.processes = session_.ranks > 5 ? 3 : 2;
  const size_t worlds = variant == "mix" ? 2 : 1, splits = below(3);
  for (size_t i = 0; i < worlds + splits; ++i) {
    CommunicatorSpec spec;
    spec.parent = i < worlds ? -1 : static_cast<int>(below(i));
    spec.transports = drawTransports(variant);
    spec.salt = random_();
    spec.channels = chance(70) ? 0 : static_cast<int>(1 + below(chance(50) ? 3 : 16));
    if (chance(40)) spec.algorithm = kAlgorithms[below(std::size(kAlgorithms))];
    spec.sealed = chance(25);
    session_.communicators.push_back(spec);
  }
}

// Mostly small; now and then some MiB, which take many rounds; or beside what can be cut evenly among ranks, channels
// and slots, where one part is a little longer or shorter than the others.
size_t Draw::drawCount() {
  const uint64_t lot = below(1000);
  if (chance(15))
    return (static_cast<size_t>(session_.ranks) << (5 + below(lot < 990 ? 8 : 13))) + below(64) - below(32);
  if (lot < 600) return below(17);
  if (lot < 950) return below(513);
  if (lot < 994) return below(8193);
  return below(lot < 999 ? 100'000 : 600'000);
}

Operation Draw::drawOperation() {
  Operation operation;
  operation.kind = static_cast<Kind>(below(kKinds));
  operation.type = kTypes[below(std::size(kTypes))];
  operation.op = drawOp(operation.type, [this](size_t limit) { return below(limit); });
  operation.count = std::min(drawCount(), mostElements_);
  operation.root = static_cast<int>(below(5040));  // a multiple of every number of ranks: modulo it stays fair
  operation.inPlace = chance(50);
  operation.salt = random_();
  operation.rounds = rounds_ && reduces(operation.kind) && isFloat(operation.type) && chance(50);
  if (configures_ && chance(30)) configure(operation);
  return operation;
}

// What each kind has beside others is a part of what is tested elsewhere: here, some that it surely has.
void Draw::configure(Operation& operation) {
  constexpr const char* kOfAllReduce[] = {"ring",    "tree",         "oneshot",  "twoshot",
                                          "halving", "hierarchical", "doubling", "twopass"};
  constexpr const char* kOfBroadcast[] = {"ring", "tree", "hierarchical", "doubling"};
  const size_t lot = below(2 * std::size(kOfAllReduce));
  if (operation.kind == Kind::kAllReduce || operation.kind == Kind::kBarrier)
    operation.algorithm = lot < std::size(kOfAllReduce) ? kOfAllReduce[lot] : nullptr;
  if (operation.kind == Kind::kBroadcast || operation.kind == Kind::kReduce)
    operation.algorithm = lot % 2 == 0 ? kOfBroadcast[lot / 2 % std::size(kOfBroadcast)] : nullptr;
  if (operation.kind == Kind::kAllGather || operation.kind == Kind::kAllGatherV)
    operation.algorithm = lot % 2 == 0 ? (lot % 4 == 0 ? "bruck" : "ring") : nullptr;
  operation.channels = chance(50) ? static_cast<int>(below(5)) : 0;
  operation.tag = chance(30) ? random_() : 0;
  operation.asking = static_cast<Asking>(below(3));
}

Step Draw::step() {
  Step step;
  const uint64_t lot = below(100);
  const size_t items = lot < 50 ? 1 : 2 + below(6);
  step.grouped = items > 1 ? chance(50) : chance(10);
  const unsigned onStreams = lot < 40 ? 0 : lot < 70 ? 100 : 50;
  for (size_t i = 0; i < items; ++i) {
    Item item;
    item.operation = drawOperation();
    item.communicator = static_cast<int>(below(session_.communicators.size()));
    item.stream = chance(onStreams) ? static_cast<int>(below(static_cast<uint64_t>(session_.streams))) : -1;
    step.items.push_back(item);
  }
  return step;
}

}  // namespace tutti::faults
