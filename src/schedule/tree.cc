// The double tree. Half of the message goes up and down one binary tree, the other half another, in which the inner
// nodes of the first are leaves: so every rank sends and receives all the time. See tree.h.
//
//   four ranks   first tree    0 - 2 - 1        second tree    3 - 1 - 2
//                                  2 - 3                         1 - 0
//
// 2 ⌈log2 n⌉ steps for the first chunk of an all-reduce, then the whole message up and down, pipelined; with a root
// once.
#include "schedule/tree.h"

#include <algorithm>
#include <bit>

#include "schedule/row.h"

namespace tutti::schedule {
namespace {

constexpr Collective kTreeHas[] = {Collective::kAllReduce, Collective::kBroadcast, Collective::kReduce};

int lowestBit(int value) { return value & -value; }

int parentInFirst(int size, int position) {
  if (position == 0) return -1;
  const int bit = lowestBit(position);
  const int up = (position ^ bit) | (bit << 1);
  return up < size ? up : position ^ bit;
}

std::vector<int> childrenInFirst(int size, int position) {
  if (size == 1) return {};
  if (position == 0) return {static_cast<int>(std::bit_floor(static_cast<unsigned>(size - 1)))};
  std::vector<int> children;
  const int half = lowestBit(position) / 2;
  if (half > 0) children.push_back(position - half);
  for (int step = half; step > 0; step /= 2) {
    if (position + step >= size) continue;
    children.push_back(position + step);
    break;
  }
  return children;
}

// Tree 1 is tree 0 under another numbering: mirrored if the size is even, shifted by one if it is odd. Either way the
// even positions of tree 0, its inner nodes, become (nearly all) odd ones, its leaves.
int toFirst(int tree, int size, int position) {
  if (tree == 0) return position;
  return size % 2 == 0 ? size - 1 - position : (position + size - 1) % size;
}

int fromFirst(int tree, int size, int position) {
  if (tree == 0 || position < 0) return position;
  return size % 2 == 0 ? size - 1 - position : (position + 1) % size;
}

}  // namespace

TreeNode treeNode(int tree, int size, int position) {
  const int first = toFirst(tree, size, position);
  TreeNode node;
  node.parent = fromFirst(tree, size, parentInFirst(size, first));
  node.children = childrenInFirst(size, first);
  for (int& child : node.children) child = fromFirst(tree, size, child);
  for (int up = parentInFirst(size, first); up >= 0; up = parentInFirst(size, up)) ++node.level;
  return node;
}

TreeNode treeNodeFromZero(int tree, int size, int position) {
  TreeNode node = treeNode(tree, size, position);
  const int root = fromFirst(tree, size, 0), cut = toFirst(tree, size, 0);
  if (root == 0) return node;
  if (position == 0) {
    node.children.push_back(root);
    node.parent = -1;
    node.level = 0;
    return node;
  }
  if (position == root) node.parent = 0;
  std::erase(node.children, 0);
  int level = 0;
  for (int up = toFirst(tree, size, position); up >= 0 && up != cut; up = parentInFirst(size, up)) ++level;
  // Below the cut `level` counts the edges to position 0; elsewhere one more than those to the root, which hangs there.
  node.level = level;
  return node;
}

int treeDepth(int size) noexcept { return size == 1 ? 0 : std::bit_width(static_cast<unsigned>(size - 1)); }

// Every step gets a lag such that all ranks work in step: what is posted in iteration t is taken in iteration t + 1.
// So a long message flows through the whole tree with every rank busy, and a wait always goes to an earlier iteration:
// for a slot to the one before; for room, at depth 2, to the one in which the message before the last was taken.

void broadcastOnTrees(Builder& builder, const TreeTeam& team) {
  const bool leads = team.leaderOf(team.position) == builder.rank();
  for (int tree = 0; tree < kTrees; ++tree) {
    const TreeNode node = treeNodeFromZero(tree, team.size, team.position);
    auto step = builder.at(tree);
    if (!leads) {
      step.fromRank(team.leaderOf(team.position)).to(Operand::output()).lag(node.level + 1);
      continue;
    }
    if (node.parent < 0) {
      step.from(Operand::input());
    } else {
      step.fromRank(team.leaderOf(node.parent));
    }
    step.to(Operand::output()).lag(node.level).directWrite();
    for (int child : node.children) step.toRank(team.leaderOf(child));
    for (int other : team.others) step.toRank(other);
  }
}

void reduceOnTrees(Builder& builder, const TreeTeam& team) {
  const bool leads = team.leaderOf(team.position) == builder.rank();
  const int deepest = treeDepth(team.size) + 2;
  for (int tree = 0; tree < kTrees; ++tree) {
    const TreeNode node = treeNodeFromZero(tree, team.size, team.position);
    auto step = builder.at(tree).from(Operand::input());
    if (!leads) {
      step.toRank(team.leaderOf(team.position)).lag(deepest - node.level - 1);
      continue;
    }
    for (int other : team.others) step.fromRank(other);
    for (int child : node.children) step.fromRank(team.leaderOf(child));
    step.lag(deepest - node.level);
    if (node.parent < 0) {
      step.to(Operand::output()).finalise();
    } else {
      step.toRank(team.leaderOf(node.parent));
    }
  }
}

namespace {

// Up to the root, which turns the flow around in one step, and down again.
void allReduceOnTrees(Builder& builder, const Row& row) {
  const int size = builder.size(), depth = treeDepth(size);
  for (int tree = 0; tree < kTrees; ++tree) {
    const TreeNode node = treeNode(tree, size, row.placeOf(builder.rank()));
    const auto toChildren = [&](Builder::Draft step) {
      for (int child : node.children) step.toRank(row.rankAt(child));
    };
    auto up = builder.at(tree).from(Operand::input()).lag(depth - node.level);
    for (int child : node.children) up.fromRank(row.rankAt(child));
    if (node.parent < 0) {
      toChildren(up.to(Operand::output()).finalise().directWrite());
    } else {
      const int parent = row.rankAt(node.parent);
      up.toRank(parent);
      toChildren(builder.at(tree).fromRank(parent).to(Operand::output()).lag(depth + node.level).directWrite());
    }
  }
}

void rootedOnTrees(Builder& builder, const Shape& shape, const Row& row) {
  const int size = shape.size, root = row.placeOf(shape.root);
  TreeTeam team;
  team.size = size;
  team.position = (row.placeOf(builder.rank()) - root + size) % size;
  team.leaderOf = [&row, root, size](int position) { return row.rankAt((position + root) % size); };
  if (shape.collective == Collective::kBroadcast) {
    broadcastOnTrees(builder, team);
  } else {
    reduceOnTrees(builder, team);
  }
}

Schedule buildTree(const Shape& shape, int rank) {
  Builder builder(shape, rank, SegmentMap::kSplit, kTrees);
  const Row row(shape.groupOf, shape.within);
  const bool rooted = hasRoot(shape.collective);
  if (rooted) {
    rootedOnTrees(builder, shape, row);
  } else {
    allReduceOnTrees(builder, row);
  }
  // On so few ranks a link carries the way up of one tree and the way down of the other.
  Schedule schedule = builder.finish(rooted ? 1 : shape.size <= 3 ? 3 : 2);
  schedule.grouping = row.digest();
  return schedule;
}

// A rank is an inner node for one half of the message and a leaf for the other. An inner node handles the messages of
// two children, one after the other, at every level of the way.
Workload workloadOfTree(const Request& request, const Scale& scale) {
  const double bytes = double(request.bytes);
  const int passes = request.collective == Collective::kAllReduce ? 2 : 1;
  const bool combines = request.collective != Collective::kBroadcast;
  const double share = double(scale.ranks - 1) / scale.ranks, depth = passes * log2Ceil(scale.ranks);
  Workload work;
  work.busiest = {passes * bytes, passes * bytes, combines ? bytes : 0, 2 * depth};
  work.mean = {share * passes * bytes, share * passes * bytes, combines ? share * bytes : 0, 2.0 * passes};
  fillPipeline(work, scale, depth, bytes / 2);
  if (request.collective == Collective::kAllReduce) work.handed = bytes / 2 / slots::kBytes;
  // In one of the two trees it has two children.
  if (request.collective != Collective::kReduce && scale.ranks > 2)
    work.busiest.repeated = bytes / 2, work.mean.repeated = share * bytes / 2;
  // Two ranks of a host have links to other hosts: where there are two hosts one of each in one direction.
  work.crossers = std::min(2, scale.ranksPerHost);
  if (scale.ranksPerHost > 1) work.crossings = scale.hosts == 2 ? 1 : 1.5;
  return work;
}

}  // namespace

constinit const AlgorithmRow rows::kTree{
    .name = "tree", .collectives = kTreeHas, .build = buildTree, .workload = workloadOfTree};

}  // namespace tutti::schedule
