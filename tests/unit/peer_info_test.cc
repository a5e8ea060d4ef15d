#include "topology/peer_info.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace tutti::topology {
namespace {

TEST(PeerInfo, DescribesThisProcess) {
  const PeerInfo info = describeSelf(), again = describeSelf();
  EXPECT_FALSE(info.hostName.empty());
  EXPECT_GE(info.cores, 1u);
  EXPECT_GT(info.pid, 0);
  EXPECT_EQ(info.hostId, again.hostId);
  EXPECT_EQ(info.machineId, again.machineId);
  EXPECT_NE(info.machineId, 0u);
  EXPECT_EQ(info.processToken, again.processToken);
  EXPECT_NE(info.processToken, 0u);
}

TEST(PeerInfo, TakesAnotherHostFromTheEnvironment) {
  const uint64_t real = describeSelf().hostId, machine = describeSelf().machineId;
  ::setenv("TUTTI_HOST_ID", "n1", 1);
  const uint64_t first = describeSelf().hostId;
  ::setenv("TUTTI_HOST_ID", "n2", 1);
  const uint64_t second = describeSelf().hostId;
  EXPECT_EQ(describeSelf().machineId, machine) << "whose cores it runs on";
  ::unsetenv("TUTTI_HOST_ID");
  EXPECT_NE(first, second);
  EXPECT_NE(first, real);
  EXPECT_EQ(describeSelf().hostId, real);
}

TEST(PeerInfo, CrossesAsBytes) {
  PeerInfo info = describeSelf();
  info.hostName = "a host with a name";
  info.numaNode = -1;
  info.unixSockets = false;
  info.wantsPreflight = true;
  info.networkMegabits = 25'000;
  info.rdmaMegabits = 400'000;
  info.gpuBusId = "0001:3b:00.0";
  info.lacks = {{"verbs", "there is no RDMA device here"}, {"other", std::string(1000, 'x')}};
  const PeerInfo copy = decodePeerInfo(encode(info));
  EXPECT_EQ(copy.hostName, info.hostName);
  EXPECT_EQ(copy.hostId, info.hostId);
  EXPECT_EQ(copy.machineId, info.machineId);
  EXPECT_EQ(copy.processToken, info.processToken);
  EXPECT_EQ(copy.pid, info.pid);
  EXPECT_EQ(copy.uid, info.uid);
  EXPECT_EQ(copy.cores, info.cores);
  EXPECT_EQ(copy.numaNode, -1);
  EXPECT_FALSE(copy.unixSockets);
  EXPECT_TRUE(copy.wantsPreflight);
  EXPECT_EQ(copy.networkMegabits, 25'000u);
  EXPECT_EQ(copy.rdmaMegabits, 400'000u);
  EXPECT_EQ(copy.gpuBusId, "0001:3b:00.0");
  ASSERT_EQ(copy.lacks.size(), 2u);
  EXPECT_EQ(copy.lacks.at("verbs"), info.lacks.at("verbs"));
  EXPECT_LT(copy.lacks.at("other").size(), 500u);  // what others have to keep has an end
}

TEST(PeerInfo, RefusesAPlaceThatNoGpuHas) {
  PeerInfo info = describeSelf();
  info.gpuBusId = "0001:3b:00.0\n";
  EXPECT_THROW(decodePeerInfo(encode(info)), Error);
  info.gpuBusId.assign(33, '0');
  EXPECT_THROW(decodePeerInfo(encode(info)), Error);
}

TEST(PeerInfo, RefusesBytesThatAreNoCard) {
  const auto bytes = encode(describeSelf());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(decodePeerInfo(std::span(bytes).first(length)), Error) << length;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THROW(decodePeerInfo(longer), Error);
  auto other = bytes;
  other[0] ^= std::byte{1};
  EXPECT_THROW(decodePeerInfo(other), Error);
}

}  // namespace
}  // namespace tutti::topology
