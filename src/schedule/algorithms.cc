// The table of algorithms, and the way from it to a schedule.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/error.h"
#include "base/plain_text.h"
#include "schedule/builder.h"
#include "settings/settings.h"

namespace tutti::schedule {
namespace {

// In the order of the enumeration.
constexpr const AlgorithmRow* kBuiltIn[] = {&rows::kRing,     &rows::kTree,   &rows::kOneShot, &rows::kTwoShot,
                                            &rows::kHalving,  &rows::kBruck,  &rows::kDirect,  &rows::kHierarchical,
                                            &rows::kDoubling, &rows::kTwoPass};
static_assert(std::size(kBuiltIn) == kBuiltInAlgorithms);

// Rows are only added, each before the count that shows it.
struct Registered {
  std::mutex adding;  // held by who adds; readers go by the count
  const AlgorithmRow* rows[kMostAlgorithms - kBuiltInAlgorithms] = {};
  std::atomic<int> count{0};
};
constinit Registered registered;

std::string namesOf(std::span<const Algorithm> algorithms) {
  std::string names;
  for (const Algorithm each : algorithms) names += fmt::format("{}{}", names.empty() ? "" : ", ", nameOf(each));
  return names;
}

void check(Algorithm algorithm, const Shape& shape, int rank) {
  const auto fail = [&](const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); };
  if (!rowOf(algorithm).has(shape.collective)) {
    const std::string names = namesOf(algorithmsFor(shape.collective));
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
  const auto isOfAll = [&](const std::vector<int>& list, const char* name) {
    if (!list.empty() && list.size() != static_cast<size_t>(shape.size))
      fail(fmt::format("{} has {} entries for {} ranks; give one for each", name, list.size(), shape.size));
  };
  isOfAll(shape.groupOf, "groupOf");
  isOfAll(shape.within, "within");
}

// Whether every buffer holds the whole message, so that it is split; otherwise segments belong to ranks.
bool isWhole(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kBarrier ||
         collective == Collective::kBroadcast || collective == Collective::kReduce;
}

Schedule buildAlone(const Shape& shape) {
  Builder builder(shape, 0, isWhole(shape.collective) ? SegmentMap::kSplit : SegmentMap::kPerRank, 1);
  auto step = builder.at(0).from(Operand::input()).to(Operand::output());
  if (reduces(shape.collective) || shape.collective == Collective::kBarrier) step.finalise();
  return builder.finish(1);
}

}  // namespace

bool AlgorithmRow::has(Collective collective) const noexcept {
  const bool movesParts = linksToAll || !countsArePrivate(collective);
  return movesParts && std::ranges::find(collectives, plainOf(collective)) != collectives.end();
}

// Acquire: pairs with registerAlgorithm, so that the row is there.
int algorithmCount() noexcept { return kBuiltInAlgorithms + registered.count.load(std::memory_order_acquire); }

const AlgorithmRow& rowOf(Algorithm algorithm) {
  const int number = static_cast<int>(algorithm);
  if (number >= algorithmCount()) throw Error(ErrorCode::kInternal, fmt::format("unknown algorithm {}", number));
  return number < kBuiltInAlgorithms ? *kBuiltIn[number] : *registered.rows[number - kBuiltInAlgorithms];
}

std::string_view nameOf(Algorithm algorithm) { return rowOf(algorithm).name; }

std::vector<Algorithm> allAlgorithms() {
  std::vector<Algorithm> all;
  for (int number = 0; number < algorithmCount(); ++number) all.push_back(static_cast<Algorithm>(number));
  return all;
}

Algorithm algorithmByName(std::string_view name) {
  constexpr size_t kMostShown = 80;
  const std::string wanted = settings::lowered(std::string(name));
  const auto all = allAlgorithms();
  const auto found = std::ranges::find(all, wanted, [](Algorithm each) { return nameOf(each); });
  if (found != all.end()) return *found;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no algorithm; choose one of: {}", plainText(name, kMostShown), namesOf(all)));
}

Algorithm registerAlgorithm(const AlgorithmRow& row) {
  std::lock_guard lock(registered.adding);
  const int number = algorithmCount();
  if (number == kMostAlgorithms)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there are {} algorithms, and no room for '{}'", number, row.name));
  for (const Algorithm each : allAlgorithms())
    if (nameOf(each) == row.name)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("an algorithm is called '{}' already", row.name));
  registered.rows[number - kBuiltInAlgorithms] = &row;
  registered.count.store(number + 1 - kBuiltInAlgorithms, std::memory_order_release);  // pairs with algorithmCount
  return static_cast<Algorithm>(number);
}

bool AlgorithmRow::can(const Request& request) const noexcept {
  return has(request.collective) && (addsInRankOrder || !request.inRankOrder);
}

std::vector<Algorithm> algorithmsFor(Collective collective) {
  std::vector<Algorithm> having;
  for (const Algorithm each : allAlgorithms())
    if (rowOf(each).has(collective)) having.push_back(each);
  return having;
}

std::vector<Algorithm> algorithmsFor(const Request& request) {
  std::vector<Algorithm> able = algorithmsFor(request.collective);
  std::erase_if(able, [&](Algorithm each) { return !rowOf(each).can(request); });
  return able;
}

Schedule build(Algorithm algorithm, const Shape& shape, int rank) {
  check(algorithm, shape, rank);
  Schedule schedule = shape.size == 1 ? buildAlone(shape) : rowOf(algorithm).build(shape, rank);
  schedule.algorithm = algorithm;
  return schedule;
}

}  // namespace tutti::schedule
