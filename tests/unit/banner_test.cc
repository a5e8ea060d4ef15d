#include "diagnose/banner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/variables.h"

namespace tutti::comm {
namespace {

using test::Setting, test::Settings;

// The info of a rank of this process as it is on a host of that name; `process` tells processes apart.
topology::PeerInfo cardOn(const std::string& host, uint64_t process) {
  const Settings settings({Setting{"TUTTI_HOST_ID", host}});
  topology::PeerInfo info = topology::describeSelf();
  info.hostName = host;
  info.processToken += process;
  info.cores = 8;
  return info;
}

// As every rank would say it on a machine without RDMA.
const std::string kNoDevice = "there is no RDMA device here";
const std::string kNetworked =
    fmt::format("tcp (not p2p: different hosts; not shm: different hosts; not verbs: {})", kNoDevice);

Rows linksOf(std::vector<topology::PeerInfo> infos, const char* transports = "") {
  for (topology::PeerInfo& info : infos) info.lacks["verbs"] = kNoDevice;
  return describeLinks(link::builtinTransports(transports), infos);
}

TEST(Banner, WhatOneRankLacksIsAReason) {
  auto a = cardOn("n1", 0), c = cardOn("n2", 2);
  c.lacks["tcp"] = "a network is missing";
  const Rows rows = linksOf({a, c}, "tcp");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NE(rows[0].second.find(fmt::format("not tcp: a network is missing (process {} on host n2)", c.pid)),
            std::string::npos)
      << rows[0].second;
}

TEST(Banner, RanksByHost) {
  const std::vector<topology::PeerInfo> infos = {cardOn("n1", 0), cardOn("n2", 1), cardOn("n1", 0), cardOn("n1", 2)};
  EXPECT_EQ(describeHosts(infos),
            (Rows{{"host n1", "ranks 0, 2, 3; 2 processes, 8 cores"}, {"host n2", "rank 1; 1 process, 8 cores"}}));
}

TEST(Banner, CoresAreThoseOfAllRanksOfAHost) {
  std::vector<topology::PeerInfo> infos = {cardOn("n1", 0), cardOn("n1", 1), cardOn("n1", 2)};
  for (size_t rank = 0; rank < infos.size(); ++rank)
    infos[rank].cores = 1, infos[rank].coreBits = {std::byte{1} << (rank == 2 ? 5 : 1)};
  const auto text = [&] { return describeHosts(infos)[0].second; };
  EXPECT_EQ(text(), "ranks 0-2; 3 processes, 2 cores");
  infos[0].coreBits = {std::byte{0xff}};
  EXPECT_EQ(text(), "ranks 0-2; 3 processes, 1 core") << "it has a share of eight";
}

TEST(Banner, ManyHostsShareARow) {
  std::vector<topology::PeerInfo> infos;
  for (uint64_t r = 0; r < 40; ++r) infos.push_back(cardOn("n" + std::to_string(r / 2), r));
  const Rows rows = describeHosts(infos);
  ASSERT_EQ(rows.size(), 17u);
  EXPECT_EQ(rows[15].second, "ranks 30, 31; 2 processes, 8 cores");
  EXPECT_EQ(rows[16], (Rows::value_type{"others", "4 more hosts with 8 ranks"}));
}

TEST(Banner, EachKindOfLinkAndWhyNoFasterOne) {
  const auto a = cardOn("n1", 0), b = cardOn("n1", 1), c = cardOn("n2", 2);
  EXPECT_EQ(linksOf({a, a, b, c}), (Rows{{"links in a process", "p2p"},
                                         {"links in a host", "shm (not p2p: different processes)"},
                                         {"links between hosts", kNetworked}}));
  EXPECT_EQ(linksOf({a, a}), (Rows{{"links in a process", "p2p"}}));
  auto apart = b;
  apart.unixSockets = false;
  EXPECT_EQ(linksOf({a, apart}),
            (Rows{{"links in a host", fmt::format("tcp (not p2p: different processes; not shm: TUTTI_UNIX_SOCKETS=0 in "
                                                  "process {} alone; not verbs: {})",
                                                  ::getpid(), kNoDevice)}}));
  auto both = a;
  both.unixSockets = false;
  EXPECT_EQ(linksOf({both, apart}),
            (Rows{{"links in a host",
                   fmt::format("tcp (not p2p: different processes; not shm: TUTTI_UNIX_SOCKETS=0; not verbs: {})",
                               kNoDevice)}}));
  EXPECT_EQ(linksOf({a}), Rows{});
}

TEST(Banner, AListOfTransportsIsAReason) {
  const auto a = cardOn("n1", 0), b = cardOn("n1", 1), c = cardOn("n2", 2);
  EXPECT_EQ(
      linksOf({a, b}, "tcp"),
      (Rows{{"links in a host",
             "tcp (not p2p: left out by TUTTI_TRANSPORT (config.transports); not shm: left out by TUTTI_TRANSPORT "
             "(config.transports); not verbs: left out by TUTTI_TRANSPORT (config.transports))"}}));
  EXPECT_EQ(linksOf({a, c}, "shm"),
            (Rows{{"links between hosts",
                   "none (not p2p: left out by TUTTI_TRANSPORT (config.transports); not shm: different hosts; "
                   "not verbs: left out by TUTTI_TRANSPORT (config.transports); not tcp: left out by TUTTI_TRANSPORT "
                   "(config.transports))"}}));
}

TEST(Banner, SizesThatArePlannedAlikeAreOneRange) {
  const Rows rows = describePlans([](Collective collective, size_t bytes) {
    if (collective != Collective::kAllReduce) return "ring";
    return bytes <= 8 ? "oneshot" : bytes <= 1024 ? "tree" : bytes < 64 << 20 ? "twoshot" : "ring, 2 channels";
  });
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[1].second, "8 B: oneshot; 16 B to 1 KiB: tree; 2 KiB to 32 MiB: twoshot; 64 MiB: ring, 2 channels");
  EXPECT_EQ(rows[2], (Rows::value_type{"  broadcast", "8 B to 64 MiB: ring"}));
}

TEST(Banner, AddressesHaveTheirInterfaces) {
  const Rows rows = describeInterfaces({"=lo", 4});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0], (Rows::value_type{"addresses", "lo 127.0.0.1"}));
  EXPECT_NE(describeInterfaces({"=nosuch", 4})[0].second.find("no network interface"), std::string::npos);
}

}  // namespace
}  // namespace tutti::comm
