#include "schedule/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tutti::schedule {
namespace {

std::vector<int> parentsOf(int tree, int size) {
  std::vector<int> parents;
  for (int position = 0; position < size; ++position) parents.push_back(treeNode(tree, size, position).parent);
  return parents;
}

// The published tables of the double binary tree (parent of each rank, -1 at the root).
TEST(DoubleTree, HasTheKnownParents) {
  using Row = std::vector<int>;
  const std::map<int, std::pair<Row, Row>> golden{
      {2, {{-1, 0}, {1, -1}}},
      {3, {{-1, 2, 0}, {1, -1, 0}}},
      {4, {{-1, 2, 0, 2}, {1, 3, 1, -1}}},
      {8, {{-1, 2, 4, 2, 0, 6, 4, 6}, {1, 3, 1, 7, 5, 3, 5, -1}}},
      {12, {{-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 8, 10}, {1, 3, 1, 11, 5, 7, 5, 3, 9, 7, 9, -1}}},
      {13, {{-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8}, {9, -1, 3, 5, 3, 9, 7, 5, 7, 1, 11, 0, 11}}},
      {14, {{-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12}, {1, 5, 3, 1, 3, 13, 7, 9, 7, 5, 11, 9, 11, -1}}},
  };
  for (const auto& [size, rows] : golden) {
    EXPECT_EQ(parentsOf(0, size), rows.first) << size;
    EXPECT_EQ(parentsOf(1, size), rows.second) << size;
  }
}

TEST(DoubleTree, HasTheKnownDepths) {
  for (const auto& [size, depth] : std::map<int, int>{{2, 1}, {3, 2}, {4, 2}, {8, 3}, {12, 4}, {16, 4}, {64, 6}}) {
    for (int tree = 0; tree < kTrees; ++tree) {
      int deepest = 0;
      for (int position = 0; position < size; ++position) {
        deepest = std::max(deepest, treeNode(tree, size, position).level);
      }
      EXPECT_EQ(deepest, depth) << size;
    }
    EXPECT_EQ(treeDepth(size), depth);
  }
}

// Children and parents name each other, levels count up from the root, and all hang on one root.
void expectTree(TreeNode (*nodeOf)(int, int, int), int tree, int size, int deepest) {
  int roots = 0, edges = 0;
  for (int position = 0; position < size; ++position) {
    const TreeNode node = nodeOf(tree, size, position);
    roots += node.parent < 0;
    EXPECT_LE(node.level, deepest);
    for (int child : node.children) {
      EXPECT_EQ(nodeOf(tree, size, child).parent, position) << size;
      EXPECT_EQ(nodeOf(tree, size, child).level, node.level + 1) << size;
      ++edges;
    }
  }
  EXPECT_EQ(roots, 1) << size;
  EXPECT_EQ(edges, size - 1) << size;
}

TEST(DoubleTree, IsATreeForEverySize) {
  for (int size = 1; size <= 300; ++size) {
    for (int tree = 0; tree < kTrees; ++tree) {
      expectTree(treeNode, tree, size, treeDepth(size));
      expectTree(treeNodeFromZero, tree, size, treeDepth(size) + 1);
      EXPECT_EQ(treeNodeFromZero(tree, size, 0).parent, -1);
    }
  }
}

// What makes two trees worth their while: (almost) nobody relays in both.
TEST(DoubleTree, FewAreInnerNodesOfBoth) {
  for (int size = 2; size <= 300; ++size) {
    int both = 0;
    for (int position = 0; position < size; ++position) {
      both += !treeNode(0, size, position).children.empty() && !treeNode(1, size, position).children.empty();
    }
    EXPECT_LE(both, 1) << size;
  }
}

}  // namespace
}  // namespace tutti::schedule
