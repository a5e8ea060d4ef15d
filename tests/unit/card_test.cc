#include "topology/card.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace tutti::topology {
namespace {

TEST(Card, DescribesThisProcess) {
  const Card card = describeSelf(), again = describeSelf();
  EXPECT_FALSE(card.hostName.empty());
  EXPECT_GE(card.cores, 1u);
  EXPECT_GT(card.pid, 0);
  EXPECT_EQ(card.hostId, again.hostId);
  EXPECT_EQ(card.processToken, again.processToken);
  EXPECT_NE(card.processToken, 0u);
}

TEST(Card, TakesAnotherHostFromTheEnvironment) {
  const uint64_t real = describeSelf().hostId;
  ::setenv("TUTTI_HOST_ID", "n1", 1);
  const uint64_t first = describeSelf().hostId;
  ::setenv("TUTTI_HOST_ID", "n2", 1);
  const uint64_t second = describeSelf().hostId;
  ::unsetenv("TUTTI_HOST_ID");
  EXPECT_NE(first, second);
  EXPECT_NE(first, real);
  EXPECT_EQ(describeSelf().hostId, real);
}

TEST(Card, CrossesAsBytes) {
  Card card = describeSelf();
  card.hostName = "a host with a name";
  card.numaNode = -1;
  card.unixSockets = false;
  const Card copy = decodeCard(encode(card));
  EXPECT_EQ(copy.hostName, card.hostName);
  EXPECT_EQ(copy.hostId, card.hostId);
  EXPECT_EQ(copy.processToken, card.processToken);
  EXPECT_EQ(copy.pid, card.pid);
  EXPECT_EQ(copy.uid, card.uid);
  EXPECT_EQ(copy.cores, card.cores);
  EXPECT_EQ(copy.numaNode, -1);
  EXPECT_FALSE(copy.unixSockets);
}

TEST(Card, RefusesBytesThatAreNoCard) {
  const auto bytes = encode(describeSelf());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(decodeCard(std::span(bytes).first(length)), Error) << length;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THROW(decodeCard(longer), Error);
  auto other = bytes;
  other[0] ^= std::byte{1};
  EXPECT_THROW(decodeCard(other), Error);
}

}  // namespace
}  // namespace tutti::topology
