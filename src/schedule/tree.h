// Two binary trees over the same ranks such that, roughly, whoever is an inner node of one is a leaf of the other; each
// carries half of the message, so that together they use every rank's links in both directions.
// P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009; the
// numbering is the one of NCCL, by the lowest set bit of the rank.
#pragma once
#include <functional>
#include <vector>

#include "schedule/builder.h"

namespace tutti::schedule {

struct TreeNode {
  int parent = -1;  // -1: the root
  int level = 0;    // edges to the root
  std::vector<int> children;
};

inline constexpr int kTrees = 2;

// The place of `position` in tree 0 or 1 over `size` positions.
TreeNode treeNode(int tree, int size, int position);

// The same tree hung up at position 0: what it had above it is cut off, and its root becomes a child of position 0.
TreeNode treeNodeFromZero(int tree, int size, int position);

// The greatest level that any node of either tree can have; of the trees hung up at 0, one more.
int treeDepth(int size) noexcept;

// Broadcast from, or reduction to, position 0 along both trees (segments 0 and 1). A position stands for a host: its
// leader takes part in the trees, and passes to and from the others on the host.
struct TreeTeam {
  int size = 1;
  int position = 0;
  std::function<int(int)> leaderOf;  // position → rank
  std::vector<int> others;           // ranks beside the leader at this position
};
void broadcastOnTrees(Builder& builder, const TreeTeam& team);
void reduceOnTrees(Builder& builder, const TreeTeam& team);

}  // namespace tutti::schedule
