// Which algorithms a collective has, and the way to each.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "schedule/builder.h"

namespace tutti::schedule {
namespace {

using enum Algorithm;

constexpr std::array kAllReduceHas{kRing, kTree, kOneShot, kTwoShot, kHalving, kHierarchical};
constexpr std::array kAllGatherHas{kRing, kHalving, kBruck, kDirect, kHierarchical};
constexpr std::array kReduceScatterHas{kRing, kHalving, kDirect, kHierarchical};
constexpr std::array kRootedHas{kRing, kTree, kDirect, kHierarchical};
constexpr std::array kDirectOnly{kDirect};

void check(Algorithm algorithm, const Shape& shape, int rank) {
  const auto fail = [&](const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); };
  const auto has = algorithmsFor(shape.collective);
  if (std::find(has.begin(), has.end(), algorithm) == has.end()) {
    std::string names;
    for (Algorithm each : has) names += (names.empty() ? "" : ", ") + std::string(nameOf(each));
    fail(fmt::format("{} has no algorithm {}; choose one of: {}", nameOf(shape.collective), nameOf(algorithm),
                     names.empty() ? "none (use buildSend and buildReceive)" : names));
  }
  if (shape.size < 1 || shape.size > Operand::kMaxIndex + 1) {
    fail(fmt::format("a schedule is for 1 to {} ranks, not {}", Operand::kMaxIndex + 1, shape.size));
  }
  if (rank < 0 || rank >= shape.size) fail(fmt::format("rank {} is not one of {} ranks", rank, shape.size));
  if (hasRoot(shape.collective) && (shape.root < 0 || shape.root >= shape.size)) {
    fail(fmt::format("root {} of {} is not one of {} ranks", shape.root, nameOf(shape.collective), shape.size));
  }
  if (!shape.groupOf.empty() && shape.groupOf.size() != static_cast<size_t>(shape.size)) {
    fail(fmt::format("groupOf has {} entries for {} ranks; give one for each", shape.groupOf.size(), shape.size));
  }
}

// Whether every buffer holds the whole message, so that it is split; otherwise segments belong to ranks.
bool isWhole(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kBarrier ||
         collective == Collective::kBroadcast || collective == Collective::kReduce;
}

Schedule buildAlone(Algorithm algorithm, const Shape& shape) {
  Builder builder(algorithm, shape, 0, isWhole(shape.collective) ? SegmentMap::kSplit : SegmentMap::kPerRank, 1);
  auto step = builder.at(0).from(Operand::input()).to(Operand::output());
  if (reduces(shape.collective) || shape.collective == Collective::kBarrier) step.finalise();
  return builder.finish(1);
}

}  // namespace

std::span<const Algorithm> algorithmsFor(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBarrier:
      return kAllReduceHas;
    case Collective::kAllGather:
    case Collective::kAllGatherV:
      return kAllGatherHas;
    case Collective::kReduceScatter:
    case Collective::kReduceScatterV:
      return kReduceScatterHas;
    case Collective::kBroadcast:
    case Collective::kReduce:
      return kRootedHas;
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
    case Collective::kAllToAllV:
      return kDirectOnly;
    case Collective::kSendRecv:
      break;
  }
  return {};
}

Schedule build(Algorithm algorithm, const Shape& shape, int rank) {
  check(algorithm, shape, rank);
  if (shape.size == 1) return buildAlone(algorithm, shape);
  switch (algorithm) {
    case kRing:
      return buildRing(shape, rank);
    case kTree:
      return buildTree(shape, rank);
    case kOneShot:
      return buildOneShot(shape, rank);
    case kTwoShot:
      return buildTwoShot(shape, rank);
    case kHalving:
      return buildHalving(shape, rank);
    case kBruck:
      return buildBruck(shape, rank);
    case kDirect:
      return buildDirect(shape, rank);
    case kHierarchical:
      return buildHierarchical(shape, rank);
  }
  throw Error(ErrorCode::kInternal, fmt::format("unknown algorithm {}", static_cast<int>(algorithm)));
}

}  // namespace tutti::schedule
