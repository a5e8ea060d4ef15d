#include "topology/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/error.h"

namespace tutti::topology {
namespace {

std::vector<int> coresOfNodes(const HostMachine& machine) {
  std::vector<int> cores;
  for (const MemoryNode& node : machine.nodes) cores.insert(cores.end(), node.cores.begin(), node.cores.end());
  std::sort(cores.begin(), cores.end());
  return cores;
}

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

TEST(Machine, HasTheCoresThatThisProcessMayUse) {
  const HostMachine machine = detectMachine();
  EXPECT_EQ(machine.cores, affinity());
  EXPECT_EQ(coresOfNodes(machine), machine.cores);
  EXPECT_GE(machine.physicalCores, 1);
  EXPECT_LE(machine.physicalCores, static_cast<int>(machine.cores.size()));
}

TEST(Machine, FollowsTheAffinityOfTheCallingThread) {
  const std::vector<int> all = affinity();
  HostMachine machine;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    machine = detectMachine();
  }).join();
  EXPECT_EQ(machine.cores, std::vector<int>{all.back()});
  EXPECT_EQ(machine.physicalCores, 1);
  ASSERT_EQ(machine.nodes.size(), 1u);
  EXPECT_EQ(machine.nodes[0].cores, machine.cores);
}

TEST(Machine, OwnCoresAreThoseThatHwlocFinds) {
  const HostMachine machine = detectMachine();
  const OwnCores own = ownCores();
  EXPECT_EQ(own.numbers, machine.cores);
  EXPECT_EQ(own.node, machine.nodes.size() == 1 ? machine.nodes.front().number : -1);
}

TEST(Machine, DescribesTwoNodesWithHyperThreads) {
  const HostMachine machine =
      describeMachine("numa:2(memory=1073741824) l3:1(size=33554432) l2:4(size=2097152) core:1 pu:2");
  EXPECT_EQ(machine.cores.size(), 16u);
  EXPECT_EQ(machine.physicalCores, 8);
  ASSERT_EQ(machine.nodes.size(), 2u);
  EXPECT_EQ(machine.nodes[0].number, 0);
  EXPECT_EQ(machine.nodes[1].number, 1);
  EXPECT_EQ(machine.nodes[0].bytes, uint64_t{1} << 30);
  EXPECT_EQ(machine.nodes[0].cores, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(coresOfNodes(machine), machine.cores);
}

TEST(Machine, WithoutNodesEverythingIsOneNode) {
  const HostMachine machine = describeMachine("core:3 pu:1");
  EXPECT_EQ(machine.cores, (std::vector<int>{0, 1, 2}));
  ASSERT_EQ(machine.nodes.size(), 1u);
  EXPECT_EQ(machine.nodes[0].cores, machine.cores);
}

TEST(Machine, RefusesWhatIsNoDescription) {
  try {
    describeMachine("nonsense");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("'nonsense'"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti::topology
