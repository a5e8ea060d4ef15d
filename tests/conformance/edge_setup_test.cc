// Two ends choose a transport: order, fallback, agreement, texts.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "support/edge_pair.h"
#include "transports/p2p/p2p.h"
#include "transports/shm/shm.h"

namespace tutti::test {
namespace {

using link::Connection;
using link::EdgeSetup;
using link::Registry;

struct Chosen {
  ConnectionPair connections;
  std::array<std::string, 2> errors;
  std::array<ErrorCode, 2> codes{};
};

// Advances both ends until each has a connection or an error.
Chosen choose(EdgePair& edges, MeetingPair& meetings, Registry& low, Registry& high,
              std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  Chosen chosen;
  std::array<std::unique_ptr<EdgeSetup>, 2> setups;
  for (int side = 0; side < 2; ++side)
    setups[side] = std::make_unique<EdgeSetup>(side == 0 ? low : high, edges.edge(side), std::move(meetings.ends[side]),
                                               Deadline::in(limit));
  const auto pending = [&](int side) { return !chosen.connections[side] && chosen.errors[side].empty(); };
  while (pending(0) || pending(1))
    for (int side = 0; side < 2; ++side) try {
        if (pending(side)) chosen.connections[side] = setups[side]->advance();
      } catch (const Error& failure) {
        chosen.errors[side] = failure.what();
        chosen.codes[side] = failure.code();
      }
  return chosen;
}

void fill(Registry& registry) {
  registry.add(transports::makeShm());
  registry.add(transports::makeP2p());
}

TEST(EdgeSetup, TakesTheCheapestThatBothEndsMayUse) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry low, high;
  fill(low);
  fill(high);
  auto chosen = choose(edges, meetings, low, high);
  ASSERT_TRUE(chosen.connections[0] && chosen.connections[1]) << chosen.errors[0] << chosen.errors[1];
  EXPECT_EQ(chosen.connections[0]->transport, "p2p");
  EXPECT_EQ(chosen.connections[1]->transport, "p2p");
  EXPECT_EQ(chosen.connections[0]->send.posted, chosen.connections[1]->recv.received);
}

TEST(EdgeSetup, RespectsAListThatOnlyOneEndHas) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry low, high;
  fill(low);
  fill(high);
  high.narrow("^p2p");
  auto chosen = choose(edges, meetings, low, high);
  ASSERT_TRUE(chosen.connections[0] && chosen.connections[1]) << chosen.errors[0] << chosen.errors[1];
  EXPECT_EQ(chosen.connections[0]->transport, "shm");
  EXPECT_EQ(chosen.connections[1]->transport, "shm");
}

}  // namespace
}  // namespace tutti::test
