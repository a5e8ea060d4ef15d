#include "interleavings/program.h"

#include <algorithm>
#include <bit>

namespace tutti::interleavings {
namespace {

size_t drawCount(Chance& chance) { return chance.of<size_t>({0, 1, 8, 40, 100, kMostElements}); }

// Most pairs have nothing for each other; at times nearly none has.
Item drawSparse(Chance& chance, int ranks) {
  const unsigned share = chance.of<unsigned>({10, 40, 70});
  Item item;
  item.collective = chance.of({Collective::kAllToAllV, Collective::kGatherV, Collective::kScatterV});
  item.root = hasRoot(item.collective) ? static_cast<int>(chance.below(static_cast<size_t>(ranks))) : 0;
  item.counts.resize(static_cast<size_t>(ranks), std::vector<size_t>(static_cast<size_t>(ranks)));
  for (auto& row : item.counts)
    for (size_t& count : row)
      if (chance.percent(share)) count = drawCount(chance);
  return item;
}

Item drawCollective(Chance& chance, int ranks) {
  Item item;
  item.collective = chance.of({Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                               Collective::kBroadcast, Collective::kReduce, Collective::kGather, Collective::kScatter,
                               Collective::kAllToAll, Collective::kBarrier});
  const auto algorithms = schedule::algorithmsFor(item.collective);
  item.algorithm = algorithms[chance.below(algorithms.size())];
  item.root = hasRoot(item.collective) ? static_cast<int>(chance.below(static_cast<size_t>(ranks))) : 0;
  item.channels = chance.percent(25) ? 2 : 1;
  item.count = item.collective == Collective::kBarrier ? 1 : drawCount(chance);
  return item;
}

// To another rank mostly, at times to oneself.
Item drawMessage(Chance& chance, int ranks) {
  Item item;
  item.from = static_cast<int>(chance.below(static_cast<size_t>(ranks)));
  item.to = static_cast<int>(chance.below(static_cast<size_t>(ranks)));
  item.count = drawCount(chance);
  return item;
}

std::vector<Item> drawGroup(Chance& chance, const Program& program) {
  std::vector<Item> group;
  const unsigned kind = static_cast<unsigned>(chance.below(3));
  for (size_t i = chance.of<size_t>({1, 1, 2, 4}) * (kind == 2 ? 2 : 1); i > 0; --i) {
    Item item = kind == 0   ? drawSparse(chance, program.ranks)
                : kind == 1 ? drawCollective(chance, program.ranks)
                            : drawMessage(chance, program.ranks);
    item.communicator = static_cast<int>(chance.below(static_cast<size_t>(program.communicators)));
    item.stream = static_cast<int>(chance.below(static_cast<size_t>(program.streams + 1)));
    group.push_back(std::move(item));
  }
  return group;
}

// Pieces that are long enough to be lent, of calls in place as well.
void lengthen(Program& program, Chance& chance) {
  program.lends = true;
  program.slotBytes = 8 << 10;
  for (auto& group : program.groups)
    for (Item& item : group) {
      item.count *= item.collective == Collective::kBarrier ? 1 : kTimesLonger;
      if (item.collective == Collective::kAllReduce) item.inPlace = chance.of<unsigned>({0, 1, 2, 3, 3, 3});
    }
}

uint32_t depthFor(const Program& program) {
  uint32_t depth = 1;
  for (const auto& group : program.groups)
    for (const Item& item : group)
      if (item.collective != Collective::kSendRecv)
        depth = std::max<uint32_t>(depth, schedule::build(item.algorithm, program.shapeOf(item), 0).depth);
  return std::bit_ceil(depth);
}

}  // namespace

Program drawProgram(Chance& chance) {
  Program program;
  program.ranks = 2 + static_cast<int>(chance.below(5));
  program.communicators = 1 + static_cast<int>(chance.below(2));
  program.streams = static_cast<int>(chance.below(3));
  program.slotBytes = chance.of<uint32_t>({64, 64, 256});
  for (int rank = 0; rank < program.ranks; ++rank)
    program.groupOf.push_back(static_cast<int>(chance.below(static_cast<size_t>(program.ranks))) / 2);
  for (size_t i = 1 + chance.below(3); i > 0; --i) program.groups.push_back(drawGroup(chance, program));
  if (program.ranks == 2 && chance.percent(50)) lengthen(program, chance);
  program.depth = std::min<uint32_t>(8, depthFor(program) * chance.of<uint32_t>({1, 1, 2, 8}));
  return program;
}

}  // namespace tutti::interleavings
