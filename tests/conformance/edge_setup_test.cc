// Two ends choose a transport: order, fallback, agreement, texts.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/error.h"
#include "link/edge_memory.h"
#include "link/negotiation_channel.h"
#include "link/plugin.h"
#include "support/edge_pair.h"
#include "support/faulty_loopback.h"
#include "support/few_files.h"
#include "support/patience.h"
#include "support/traffic_generator.h"
#include "team/cluster.h"
#include "transports/p2p/p2p.h"
#include "transports/shm/fd_exchange.h"
#include "transports/shm/shm.h"
#include "transports/tcp/tcp.h"

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
              std::chrono::milliseconds limit = longWait()) {
  Chosen chosen;
  std::array<std::unique_ptr<EdgeSetup>, 2> setups;
  for (int side = 0; side < 2; ++side)
    setups[side] =
        std::make_unique<EdgeSetup>(side == 0 ? low : high, edges.edge(side), std::move(meetings.ends[side]), limit);
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

struct Fallback {
  const char* name;
  FaultAt at;
  int onlyRank;
  const char* reason;  // that the log gives
};

class FallbackTest : public testing::TestWithParam<Fallback> {};

// A candidate that fails anywhere, at one end or at both, costs nothing but itself: both ends take the next.
TEST_P(FallbackTest, GoesOnToTheNextCandidateAtBothEnds) {
  const auto network = std::make_shared<FaultyNetwork>();
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry low, high;
  for (Registry* registry : {&low, &high}) {
    registry->add(makeFaulty(network, {.failAt = GetParam().at, .onlyRank = GetParam().onlyRank}));
    registry->add(transports::makeShm());
    registry->add(transports::makeTcp());
  }
  testing::internal::CaptureStderr();
  const auto limit = GetParam().at == FaultAt::kHang ? std::chrono::milliseconds(1500) : longWait();
  auto chosen = choose(edges, meetings, low, high, limit);
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(chosen.connections[0] && chosen.connections[1]) << chosen.errors[0] << chosen.errors[1];
  EXPECT_EQ(chosen.connections[0]->transport, "shm");
  EXPECT_EQ(chosen.connections[1]->transport, "shm");
  EXPECT_NE(log.find(GetParam().reason), std::string::npos) << log;
  EXPECT_NE(log.find("faulty does not work from rank 2 to rank 5 (host highhost"), std::string::npos) << log;
  EXPECT_EQ(log.find("faulty does not work from rank 5"), std::string::npos) << "said twice: " << log;
  exchangeInThreads(chosen.connections, edges, 100, mixedSizes(4096, 1));
}

INSTANTIATE_TEST_SUITE_P(EdgeSetup, FallbackTest,
                         testing::Values(Fallback{"OpenBoth", FaultAt::kOpen, -1, "fault at open"},
                                         Fallback{"OpenLow", FaultAt::kOpen, 2, "channel 0: fault at open"},
                                         Fallback{"OpenHigh", FaultAt::kOpen, 5, "at the peer: fault at open"},
                                         Fallback{"ConnectBoth", FaultAt::kConnect, -1, "fault at connect"},
                                         Fallback{"ConnectHigh", FaultAt::kConnect, 5, "at the peer: fault at connect"},
                                         Fallback{"HangLow", FaultAt::kHang, 2, "took too long"},
                                         Fallback{"DataLow", FaultAt::kData, 2, "did not arrive as they were sent"},
                                         Fallback{"DataBoth", FaultAt::kData, -1, "did not arrive as they were sent"}),
                         [](const testing::TestParamInfo<Fallback>& chosen) { return std::string(chosen.param.name); });

// Says that it is shm, and passes memory that it could make shorter under the other end, which then would die of it.
class Unsealed : public link::Transport {
 public:
  std::string_view name() const noexcept override { return "shm"; }
  link::Reachability reach(const topology::PeerInfo&, const topology::PeerInfo&) const override {
    return {true, 0.01, 100, ""};
  }
  std::unique_ptr<link::Setup> open(const link::Edge& edge, link::OobChannel& oob) override {
    oob.requestStream(link::StreamKind::kUnix);
    return std::make_unique<Passes>(edge, oob);
  }

 private:
  struct Passes : link::Setup {
    Passes(const link::Edge& edge, link::OobChannel& over) : oob(over), bytes(edgeMemoryBytes(edge)) {
      greeting = {transports::kShmMagic, transports::kShmVersion, edge.slotBytes, edge.depth, bytes, 0, 0, {}, 0};
      if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) throw systemError("no memory file", errno);
    }
    std::unique_ptr<Connection> advance() override {
      if (!exchange) {
        auto stream = oob.pollStream();
        if (!stream) return nullptr;
        exchange.emplace(std::move(stream->fd), greeting, std::vector<int>{file.get()});
      }
      exchange->advance();
      return nullptr;
    }
    link::OobChannel& oob;
    size_t bytes;
    transports::ShmGreeting greeting;
    UniqueFd file{::memfd_create("tutti-test", MFD_CLOEXEC)};
    std::optional<transports::FdExchange> exchange;
  };
};

TEST(EdgeSetup, GoesOnOverTcpWhereMemoryIsNotSealed) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry low, high;
  low.add(std::make_unique<Unsealed>());
  high.add(transports::makeShm());
  for (Registry* registry : {&low, &high}) registry->add(transports::makeTcp());
  testing::internal::CaptureStderr();
  auto chosen = choose(edges, meetings, low, high);
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(chosen.connections[0] && chosen.connections[1]) << chosen.errors[0] << chosen.errors[1];
  for (const auto& connection : chosen.connections) EXPECT_EQ(connection->transport, "tcp");
  EXPECT_NE(log.find("at the peer: the peer's memory file is not sealed"), std::string::npos) << log;
  exchangeInThreads(chosen.connections, edges, 100, mixedSizes(4096, 1));
}

// One end asks for a stream and the other throws before it does: the next candidate must not be given that stream.
class Lopsided : public link::Transport {
 public:
  std::string_view name() const noexcept override { return "lopsided"; }
  link::Reachability reach(const topology::PeerInfo&, const topology::PeerInfo&) const override {
    return {true, 0.01, 100, ""};
  }
  std::unique_ptr<link::Setup> open(const link::Edge& edge, link::OobChannel& oob) override {
    if (edge.self > edge.peer) throw Error(ErrorCode::kSystem, "nothing here");
    oob.requestStream(link::StreamKind::kTcp);
    oob.put(std::as_bytes(std::span("a blob that nobody will read")));
    return std::make_unique<Waits>();
  }

 private:
  struct Waits : link::Setup {
    std::unique_ptr<Connection> advance() override { return nullptr; }
  };
};

TEST(EdgeSetup, KeepsTheStreamsAndBlobsOfAttemptsApart) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  const auto room = meetings.room;
  Registry low, high;
  for (Registry* registry : {&low, &high}) {
    registry->add(std::make_unique<Lopsided>());
    registry->add(transports::makeTcp());
  }
  testing::internal::CaptureStderr();
  auto chosen = choose(edges, meetings, low, high);
  testing::internal::GetCapturedStderr();
  ASSERT_TRUE(chosen.connections[0] && chosen.connections[1]) << chosen.errors[0] << chosen.errors[1];
  EXPECT_EQ(chosen.connections[0]->transport, "tcp");
  EXPECT_EQ(room->streamsMade(), 2u);
  exchangeInThreads(chosen.connections, edges, 100, mixedSizes(4096, 1));
}

TEST(EdgeSetup, FallsBackWhenAStreamIsRefused) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  meetings.room->refuse(link::StreamKind::kUnix, "no Unix sockets in this place");
  Registry low, high;
  for (Registry* registry : {&low, &high}) {
    registry->add(transports::makeShm());
    registry->add(transports::makeTcp());
  }
  testing::internal::CaptureStderr();
  auto chosen = choose(edges, meetings, low, high);
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(chosen.connections[0] && chosen.connections[1]) << chosen.errors[0] << chosen.errors[1];
  EXPECT_EQ(chosen.connections[0]->transport, "tcp");
  EXPECT_NE(log.find("no Unix sockets in this place"), std::string::npos) << log;
}

TEST(EdgeSetup, NamesPeerAndEveryCandidateWhenNoneWorks) {
  const auto network = std::make_shared<FaultyNetwork>();
  EdgePair edges(4096, 4);
  edges.edge(0).selfInfo.hostId = edges.edge(1).peerInfo.hostId = 1;
  edges.edge(0).selfInfo.processToken = edges.edge(0).peerInfo.processToken;
  MeetingPair meetings;
  Registry low, high;
  for (Registry* registry : {&low, &high}) {
    registry->add(transports::makeShm());
    registry->add(makeFaulty(network, {.failAt = FaultAt::kConnect, .onlyRank = 5}));
  }
  testing::internal::CaptureStderr();
  auto chosen = choose(edges, meetings, low, high);
  testing::internal::GetCapturedStderr();
  for (const auto& error : chosen.errors) {
    EXPECT_NE(error.find("shm: different hosts"), std::string::npos) << error;
    EXPECT_NE(error.find("faulty: "), std::string::npos) << error;
    EXPECT_NE(error.find("fault at connect"), std::string::npos) << error;
  }
  EXPECT_NE(chosen.errors[0].find("rank 5 (host highhost"), std::string::npos) << chosen.errors[0];
  EXPECT_EQ(chosen.codes[0], ErrorCode::kSystem);
}

TEST(EdgeSetup, WhatManyLinksFailOfIsWarnedOfOnce) {
  const auto network = std::make_shared<FaultyNetwork>();
  Registry low, high;
  for (Registry* registry : {&low, &high}) {
    registry->add(makeFaulty(network, {.failAt = FaultAt::kConnect, .onlyRank = 2}));
    registry->add(transports::makeShm());
  }
  testing::internal::CaptureStderr();
  for (int link = 0; link < 3; ++link) {
    EdgePair edges(4096, 4);
    MeetingPair meetings;
    EXPECT_TRUE(choose(edges, meetings, low, high).connections[0]);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("faulty does not work from rank 2"), log.rfind("faulty does not work from rank 2")) << log;
  EXPECT_NE(log.find("of further links that fail so, TUTTI_DEBUG=info tells"), std::string::npos) << log;
}

// No fault of the system's: it is for the user to allow one.
TEST(EdgeSetup, WhereNoneIsAllowedSaysWhoLeftItOut) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry registry;
  registry.add(transports::makeShm());
  registry.add(transports::makeTcp());
  registry.narrow("shm");
  edges.edge(0).selfInfo.unixSockets = edges.edge(1).peerInfo.unixSockets = false;
  edges.edge(1).selfInfo.unixSockets = edges.edge(0).peerInfo.unixSockets = false;
  auto chosen = choose(edges, meetings, registry, registry);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(chosen.codes[i], ErrorCode::kInvalidUsage);
    EXPECT_NE(chosen.errors[i].find("shm: TUTTI_UNIX_SOCKETS=0; tcp: left out by TUTTI_TRANSPORT"), std::string::npos)
        << chosen.errors[i];
  }
}

TEST(EdgeSetup, SaysOnExpiryWhatEachCandidateSaid) {
  const auto network = std::make_shared<FaultyNetwork>();
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry registry;
  registry.add(makeFaulty(network, {.failAt = FaultAt::kHang}));
  testing::internal::CaptureStderr();
  // The low end's time is up first. It may be told either by its own clock or by the attempt that it then gives up.
  EdgeSetup low(registry, edges.edge(0), std::move(meetings.ends[0]), std::chrono::seconds(1));
  EdgeSetup high(registry, edges.edge(1), std::move(meetings.ends[1]), std::chrono::seconds(30));
  std::array<std::string, 2> errors;
  ErrorCode lowCode{};
  while (errors[0].empty() || errors[1].empty()) {
    try {
      if (errors[0].empty()) low.advance();
    } catch (const Error& failure) {
      errors[0] = failure.what();
      lowCode = failure.code();
    }
    try {
      if (errors[1].empty()) high.advance();
    } catch (const Error& failure) {
      errors[1] = failure.what();
    }
  }
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(lowCode, ErrorCode::kTimeout);
  EXPECT_NE(errors[0].find("rank 5 (host highhost"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("faulty: took too long, still connecting"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("within 1000 ms, its TUTTI_CONNECT_TIMEOUT_MS"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("faulty: at the peer: took too long"), std::string::npos) << errors[1];
}

// What fails for want of a descriptor may say so in a log alone, or wait for what it then never gets.
// One rank lacks what the two others have between them: all plan the same.
TEST(Registry, ARankThatLacksATransportPlansTheOthersLinksAsTheyDo) {
  class Fast final : public link::Transport {
   public:
    std::string_view name() const noexcept override { return "fast"; }
    link::Reachability reach(const topology::PeerInfo&, const topology::PeerInfo&) const override {
      return {true, 3, 20, ""};
    }
    std::string announced() const override { return "3 us, 20 GB/s"; }
    std::unique_ptr<link::Setup> open(const link::Edge&, link::OobChannel&) override { return nullptr; }
  };
  Registry has, lacks;
  has.add(std::make_unique<Fast>());
  has.add(transports::makeTcp());
  lacks.add(transports::makeTcp());  // in another order, too
  lacks.add(link::makeAbsent("fast", {3, 20}, "no device"));
  std::vector<topology::PeerInfo> infos(3);
  for (uint64_t rank = 0; rank < infos.size(); ++rank) infos[rank].hostId = rank + 1;
  infos[2].lacks = lacks.lacks(infos[2]);
  EXPECT_EQ(infos[2].lacks.at("fast"), "no device");
  const auto groups = comm::groupsOf(infos, 0);
  const auto planned = [&](const Registry& by) { return comm::machineOf(infos, groups, by, plan::Profile{}).remote; };
  EXPECT_EQ(planned(has).latencyUs, 3);
  EXPECT_EQ(planned(has).latencyUs, planned(lacks).latencyUs);
  EXPECT_EQ(planned(has).bandwidthGBs, planned(lacks).bandwidthGBs);
  EXPECT_EQ(has.terms(), lacks.terms());
  for (const Registry* registry : {&has, &lacks}) {
    EXPECT_EQ(registry->candidates(infos[0], infos[1]).front()->name(), "fast");
    EXPECT_EQ(registry->candidates(infos[0], infos[2]).front()->name(), "tcp");
  }
}

TEST(EdgeSetup, SaysThatThereWasNoDescriptorLeft) {
  const auto network = std::make_shared<FaultyNetwork>();
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry registry;
  registry.add(makeFaulty(network, {.failAt = FaultAt::kHang}));
  testing::internal::CaptureStderr();
  const Chosen chosen = [&] {
    const FewFiles none(STDERR_FILENO + 1);
    return choose(edges, meetings, registry, registry, std::chrono::milliseconds(50));
  }();
  testing::internal::GetCapturedStderr();
  for (const std::string& error : chosen.errors)
    EXPECT_NE(error.find("; this process had no file descriptor left (ulimit -n is "), std::string::npos) << error;
}

TEST(EdgeSetup, WaitsForAPeerThatComesLate) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  Registry registry;
  fill(registry);
  EdgeSetup early(registry, edges.edge(0), std::move(meetings.ends[0]), longWait());
  std::unique_ptr<link::Connection> first, second;
  for (int i = 0; i < 1000; ++i) first = early.advance();
  EXPECT_EQ(first, nullptr);
  EdgeSetup late(registry, edges.edge(1), std::move(meetings.ends[1]), longWait());
  while (!first || !second) {
    if (!first) first = early.advance();
    if (!second) second = late.advance();
  }
}

// What a peer says before this end has come so far waits here: but not without end.
TEST(EdgeSetup, KeepsSoMuchOfAPeer) {
  struct Said {
    size_t bytes, times;
    bool taken;
    uint32_t attempt = 0;
  };
  constexpr size_t kLongest = size_t{64} << 10;
  for (const Said& said : {Said{kLongest, 1, true},
                           {kLongest + 1, 1, false},
                           {kLongest, 16, true},
                           {kLongest, 17, false},
                           {1, 256, true},
                           {1, 257, false},
                           {1, 1, false, 1}}) {
    EdgePair edges(4096, 4);
    MeetingPair meetings;
    Registry low;
    fill(low);
    EdgeSetup setup(low, edges.edge(0), std::move(meetings.ends[0]), longWait());
    for (size_t i = 0; i < said.times; ++i)
      meetings.ends[1]->put(
          Writer().value(link::EdgeMessage::kBlob).value(said.attempt).block(Bytes(said.bytes)).take());
    std::string text;
    try {
      setup.advance();
    } catch (const Error& failure) {
      text = failure.what();
    }
    EXPECT_EQ(text.find("sent more than a set-up of a link takes") == std::string::npos, said.taken)
        << said.times << " of " << said.bytes << " bytes: " << text;
  }
}

TEST(EdgeSetup, RefusesEndsWithDifferentSlots) {
  EdgePair edges(4096, 4);
  edges.edge(1).slotBytes = 8192;
  MeetingPair meetings;
  Registry low, high;
  fill(low);
  fill(high);
  const auto chosen = choose(edges, meetings, low, high);
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(chosen.codes[side], ErrorCode::kInvalidUsage);
    EXPECT_NE(chosen.errors[side].find("8192"), std::string::npos) << chosen.errors[side];
  }
}

// Each end of a stream has slots of its own.
TEST(EdgeSetup, TestsStreamsWhoseEndsHaveUnlikeNumbersOfSlots) {
  EdgePair edges(4096, 4);
  edges.edge(1).streamDepth = 16;
  MeetingPair meetings;
  Registry low, high;
  for (Registry* registry : {&low, &high}) registry->add(transports::makeTcp());
  const auto chosen = choose(edges, meetings, low, high);
  ASSERT_TRUE(chosen.connections[0] && chosen.connections[1]) << chosen.errors[0] << chosen.errors[1];
  EXPECT_EQ(chosen.connections[0]->send.fifo.depth, 4u);
  EXPECT_EQ(chosen.connections[1]->send.fifo.depth, 16u);
}

std::vector<std::string> namesOf(const std::vector<link::Transport*>& transports) {
  std::vector<std::string> names;
  for (const auto* transport : transports) names.emplace_back(transport->name());
  return names;
}

TEST(Registry, OrdersCandidatesByCostAndExplainsTheRest) {
  Registry registry;
  registry.add(transports::makeTcp());
  registry.add(transports::makeShm());
  registry.add(transports::makeP2p());
  topology::PeerInfo self = topology::describeSelf(), peer = self;
  using Names = std::vector<std::string>;
  EXPECT_EQ(namesOf(registry.candidates(self, peer)), (Names{"p2p", "shm", "tcp"}));
  peer.processToken ^= 1;
  Names excluded;
  EXPECT_EQ(namesOf(registry.candidates(self, peer, &excluded)), (Names{"shm", "tcp"}));
  EXPECT_EQ(excluded, Names{"p2p: different processes"});
  peer.hostId ^= 1;
  excluded.clear();
  EXPECT_EQ(namesOf(registry.candidates(self, peer, &excluded)), Names{"tcp"});
  EXPECT_EQ(namesOf(registry.candidates(peer, self)), Names{"tcp"});
  EXPECT_EQ(excluded, (Names{"shm: different hosts", "p2p: different hosts"}));
}

std::string narrowed(const std::string& list) {
  Registry registry;
  registry.add(transports::makeP2p());
  registry.add(transports::makeShm());
  registry.add(transports::makeTcp());
  const topology::PeerInfo info = topology::describeSelf();
  std::string names;
  try {
    registry.narrow(list);
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::kInvalidArgument);
    return failure.what();
  }
  for (const auto& name : namesOf(registry.candidates(info, info))) names += name + " ";
  return names;
}

TEST(Registry, NarrowsByList) {
  EXPECT_EQ(narrowed("tcp"), "tcp ");
  EXPECT_EQ(narrowed("tcp,shm"), "shm tcp ");
  EXPECT_EQ(narrowed(" shm , tcp "), "shm tcp ");
  EXPECT_EQ(narrowed("^p2p"), "shm tcp ");
  EXPECT_EQ(narrowed("^p2p,shm"), "tcp ");
  for (const char* wrong : {"verbs", "", ",", "shm,", "^", "tcp,^shm", "TCP", "^p2p,shm,tcp"}) {
    const std::string text = narrowed(wrong);
    EXPECT_NE(text.find("this build has p2p, shm, tcp"), std::string::npos) << wrong << ": " << text;
  }
}

}  // namespace
}  // namespace tutti::test
