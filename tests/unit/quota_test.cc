// The share of processors' time that control groups grant, read from made-up trees of /proc and /sys.
#include "topology/quota.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "topology/peer_info.h"

namespace tutti::topology {
namespace {

class ProcessorQuota : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "quota-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    const auto whole = root_ + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << text;
  }
  std::string root_;
};

TEST_F(ProcessorQuota, IsUnknownWhereNothingTellsIt) { EXPECT_FALSE(processorQuota(root_)); }

TEST_F(ProcessorQuota, IsTheLeastOfAllGroupsAbove) {
  write("/proc/self/cgroup", "0::/jobs/mine\n");
  write("/sys/fs/cgroup/jobs/mine/cpu.max", "400000 100000\n");
  write("/sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  EXPECT_EQ(processorQuota(root_), 1.5);
}

TEST_F(ProcessorQuota, MaxIsNoLimit) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_FALSE(processorQuota(root_));
}

TEST_F(ProcessorQuota, IsReadFromTheOldTreeToo) {
  write("/proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/box\n0::/box\n");
  write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(processorQuota(root_));
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processorQuota(root_), 2);
}

// In a container the path may be the one outside, of which nothing is to be seen; the top is the container's own group.
TEST_F(ProcessorQuota, LooksAtTheTopWhereThePathIsNotToBeSeen) {
  write("/proc/self/cgroup", "0::/outside/container\n");
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(processorQuota(root_), 0.5);
}

TEST_F(ProcessorQuota, GarbageIsNoLimit) {
  write("/proc/self/cgroup", "nonsense\n0:\n0::\n0::/x\n");
  write("/sys/fs/cgroup/x/cpu.max", "much");
  write("/sys/fs/cgroup/cpu.max", "0 0");
  EXPECT_FALSE(processorQuota(root_));
}

// Ranks that share less time than they have cores do not spin: what one wastes the other lacks.
TEST_F(ProcessorQuota, OfLessThanACoreARankKeepsRanksFromSpinning) {
  const uint32_t cores = describeSelf(root_).cores;
  write("/proc/self/cgroup", "0::/mine\n");
  write("/sys/fs/cgroup/mine/cpu.max", "190000 100000\n");
  PeerInfo info = describeSelf(root_);
  EXPECT_EQ(info.cores, 1u) << "whole cores";
  info.hostId = 1;
  EXPECT_EQ(ranksPerCore(std::vector{info}, 0), 1);
  EXPECT_EQ(ranksPerCore(std::vector{info, info}, 0), 2);
  PeerInfo elsewhere = info;
  elsewhere.hostId = elsewhere.machineId = 2;
  EXPECT_EQ(ranksPerCore(std::vector{info, elsewhere}, 0), 1);
  write("/sys/fs/cgroup/mine/cpu.max", "200000000 100000\n");
  EXPECT_EQ(describeSelf(root_).cores, cores);
}

// --- who shares cores ---

PeerInfo boundTo(std::initializer_list<int> cores) {
  PeerInfo info;
  info.cores = static_cast<uint32_t>(cores.size());
  info.coreBits.resize(16);
  for (const int core : cores) info.coreBits[static_cast<size_t>(core) / 8] |= std::byte{1} << (core % 8);
  return info;
}

// As launchers bind them: each has a core, of which the others know nothing.
TEST(CoreLoad, RanksOnCoresOfTheirOwnShareNone) {
  const std::vector own{boundTo({0}), boundTo({1}), boundTo({64}), boundTo({127})};
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranksPerCore(own, rank), 1);
  const std::vector pairs{boundTo({0, 1}), boundTo({2, 3})};
  EXPECT_EQ(ranksPerCore(pairs, 0), 0.5);
}

TEST(CoreLoad, RanksOnTheSameCoresShareThem) {
  EXPECT_EQ(ranksPerCore(std::vector{boundTo({5}), boundTo({5}), boundTo({6})}, 0), 2);
  EXPECT_EQ(ranksPerCore(std::vector{boundTo({5}), boundTo({5}), boundTo({6})}, 2), 1);
  const std::vector all(8, boundTo({0, 1}));
  EXPECT_EQ(ranksPerCore(all, 3), 4);
  EXPECT_EQ(ranksPerCore(std::vector{boundTo({0}), boundTo({0, 1})}, 0), 1.5) << "the other one may be there";
}

// Such as containers: a host each, by their network namespaces.
TEST(CoreLoad, HostsOfOneMachineHaveTheirCoresInCommon) {
  std::vector ranks(4, boundTo({0, 1}));
  for (uint64_t rank = 0; rank < ranks.size(); ++rank) ranks[rank].hostId = rank + 1;
  EXPECT_EQ(ranksPerCore(ranks, 0), 0.5) << "nobody knows of what machines they are";
  for (PeerInfo& rank : ranks) rank.machineId = 9;
  EXPECT_EQ(ranksPerCore(ranks, 0), 2);
  ranks[0].machineId = 8;
  EXPECT_EQ(ranksPerCore(ranks, 0), 0.5);
  EXPECT_EQ(ranksPerCore(ranks, 3), 1.5);
}

// A container is granted what it is granted beside others, as far as there are cores.
TEST(CoreLoad, OnlyRanksOfOneHostShareWhatItIsGranted) {
  std::vector ranks(4, boundTo({0, 1, 2, 3}));
  for (uint64_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].hostId = rank + 1;
    ranks[rank].machineId = 9;
    ranks[rank].cores = 1;
  }
  EXPECT_EQ(ranksPerCore(ranks, 0), 1);
  ranks.resize(8, ranks[3]);
  EXPECT_EQ(ranksPerCore(ranks, 0), 2) << "each core has two";
  EXPECT_EQ(ranksPerCore(ranks, 3), 5) << "its host has five ranks and the time of one core";
}

// Shares are fractions, and one more than 1 would be a crowd.
TEST(CoreLoad, AsManyRanksAsCoresShareNone) {
  for (int count = 1; count <= 256; ++count) {
    PeerInfo info;
    info.cores = static_cast<uint32_t>(count);
    info.coreBits.resize(32);
    for (int core = 0; core < count; ++core) info.coreBits[static_cast<size_t>(core) / 8] |= std::byte{1} << (core % 8);
    EXPECT_EQ(ranksPerCore(std::vector(static_cast<size_t>(count), info), 0), 1) << count;
  }
}

TEST(CoreLoad, OfThisProcessIsOne) {
  PeerInfo self = describeSelf();
  EXPECT_EQ(self.coreBits, decodePeerInfo(encode(self)).coreBits);
  EXPECT_LE(ranksPerCore(std::vector{self}, 0), 1);
  self.coreBits.clear();
  self.cores = 2;
  EXPECT_EQ(ranksPerCore(std::vector(6, self), 0), 3) << "which they are is not known";
}

}  // namespace
}  // namespace tutti::topology
