// tutti-doctor net without its ranks: who meets whom, what becomes of what both ends tell, what is printed; and a link
// that falls silent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/error.h"
#include "doctor/net/pair_records.h"
#include "doctor/net/rounds.h"
#include "doctor/net/table.h"
#include "doctor/net/talk.h"
#include "preflight/findings.h"
#include "support/edge_pair.h"
#include "transports/p2p/p2p.h"

namespace tutti::doctor::net {
namespace {

using preflight::HostReport;
using preflight::PairResult;

std::vector<std::vector<int>> hostsOf(int hosts, int ranksEach) {
  std::vector<std::vector<int>> all(static_cast<size_t>(hosts));
  for (int rank = 0; rank < hosts * ranksEach; ++rank) all[static_cast<size_t>(rank / ranksEach)].push_back(rank);
  return all;
}

// Each pair once, and nobody twice in a round.
void expectFair(const Tournament& all, size_t pairs) {
  std::set<std::tuple<int, int, std::string>> met;
  for (const Round& round : all.rounds) {
    std::set<int> busy;
    for (const Meeting& one : round) {
      EXPECT_LT(one.low, one.high);
      EXPECT_TRUE(busy.insert(one.low).second && busy.insert(one.high).second) << one.low << " " << one.high;
      EXPECT_TRUE(met.insert({one.low, one.high, one.transport}).second) << one.low << " " << one.high;
    }
  }
  EXPECT_EQ(met.size(), pairs);
}

TEST(Tournament, EveryPairMeetsOnce) {
  for (int hosts = 1; hosts <= 17; ++hosts) {
    const auto n = static_cast<size_t>(hosts);
    expectFair(tournament(hostsOf(hosts, 1), {"shm"}, {"tcp"}, 63), n * (n - 1) / 2);
    EXPECT_EQ(tournament(hostsOf(hosts, 1), {}, {"tcp"}, 63).rounds.size(), hosts == 1 ? 0 : n + n % 2 - 1);
  }
}

TEST(Tournament, BetweenHostsTheFirstRanksAndInsideAll) {
  const Tournament all = tournament(hostsOf(3, 4), {"shm"}, {"tcp", "verbs"}, 63);
  expectFair(all, 2 * 3 + 3 * 6);
  for (const Round& round : all.rounds)
    for (const Meeting& one : round)
      EXPECT_EQ(one.transport == "shm", one.low / 4 == one.high / 4) << one.low << " " << one.high;
}

TEST(Tournament, OfManyRanksInAHostEight) { expectFair(tournament(hostsOf(1, 20), {"shm"}, {"tcp"}, 63), 28); }

TEST(Tournament, OfManyHostsSomeOpponentsForEach) {
  const Tournament all = tournament(hostsOf(100, 1), {}, {"tcp"}, 5);
  expectFair(all, 5 * 50);
  EXPECT_EQ(all.left, 94u * 50);
  std::map<int, int> met;
  for (const Round& round : all.rounds)
    for (const Meeting& one : round) ++met[one.low], ++met[one.high];
  for (const auto& [rank, times] : met) EXPECT_EQ(times, 5) << rank;
}

TEST(PairRecords, CrossAsBytes) {
  const std::vector<PairResult> pairs{{1, 2, 0, 0, "tcp", 3, 4, 5, ""}, {0, 7, 0, 0, "verbs", 0, 0, 0, "no way"}};
  EXPECT_EQ(decodePairs(encode(pairs)), pairs);
  EXPECT_TRUE(decodePairs(encode(std::vector<PairResult>{})).empty());
  Bytes cut = encode(pairs);
  cut.pop_back();
  EXPECT_THROW(decodePairs(cut), Error);
}

TEST(PairRecords, AreOfNumbersThatAreMeasured) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kAll = std::numeric_limits<double>::infinity();
  for (const PairResult& odd : {PairResult{1, 2, 0, 0, "tcp", kNone, 4, 5, ""},
                                {1, 2, 0, 0, "tcp", 3, kAll, 5, ""},
                                {1, 2, 0, 0, "tcp", 3, 4, -5, ""}})
    EXPECT_THROW(decodePairs(encode(std::vector{odd})), Error) << odd.latencyUs;
}

TEST(PairRecords, TheLowerRankHasTheNumbersAndEitherMayFail) {
  std::vector<PairResult> pairs;
  merge({1, 2, 0, 1, "tcp", 0, 0, 0, ""}, pairs);
  merge({1, 2, 0, 1, "tcp", 9, 4, 5, ""}, pairs);
  merge({1, 2, 0, 1, "verbs", 9, 4, 5, ""}, pairs);
  merge({1, 2, 0, 1, "verbs", 0, 0, 0, "the port went down"}, pairs);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0], (PairResult{1, 2, 0, 1, "tcp", 9, 4, 5, ""}));
  EXPECT_EQ(pairs[1].why, "the port went down");
}

TEST(PairRecords, AReasonWithoutTheOtherTransports) {
  const std::string tried =
      "rank 2 did not get a link within 3000 ms to rank 3. Tried: p2p: left out by TUTTI_TRANSPORT "
      "(config.transports); "
      "tcp: took too long, still connecting";
  EXPECT_EQ(shortReason(tried, "tcp"), "took too long, still connecting");
  EXPECT_EQ(shortReason(tried, "verbs"), tried);
  const std::string forbidden =
      "rank 2 may use no transport to rank 3 (verbs: no port is active: rxe0:1 (down); tcp: left out by "
      "TUTTI_TRANSPORT "
      "(config.transports)): allow one that reaches it, such as tcp";
  EXPECT_EQ(shortReason(forbidden, "verbs"), "no port is active: rxe0:1 (down)");
  EXPECT_EQ(shortReason("No route to host", "tcp"), "No route to host");
}

Outcome outcomeOf(int hosts) {
  Outcome outcome;
  outcome.ranks = hosts;
  for (int i = 0; i < hosts; ++i) {
    HostReport& one = outcome.reports.emplace_back();
    one.host = fmt::format("n{}", i + 1);
    one.version = "0.2.0";
    one.firstRank = i;
    one.limits = {65536, 1024, 4096, preflight::Limits::kUnlimited, 0, 1.5};
    one.interfaces = {{"eth0", "up", true, true, false, 0, 1500, 25'000, {{"10.0.0.1", 24}}}};
  }
  for (int i = 1; i < hosts; ++i)
    outcome.pairs.push_back({0, i, 0, static_cast<size_t>(i), "tcp", 20, 2.5, 1.5, i == 2 ? "no route to host" : ""});
  return outcome;
}

void expectWords(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

TEST(NetTable, AMatrixOfFewHosts) {
  const Outcome outcome = outcomeOf(3);
  const std::string text = asText(outcome, preflight::findingsOf(outcome.reports, outcome.pairs), 100);
  expectWords(text, {"3 ranks on 3 hosts", "64 KiB", "1.5", "eth0", "25 Gbit/s", "10.0.0.1/24",
                     "n1        -                2.5 GB/s, 20 us  fails", "n2        1.5 GB/s, 20 us  -",
                     "error: n1 (rank 0) and n3 (rank 2)", "no route to host"});
  EXPECT_EQ(text.find("Nothing to mend"), std::string::npos);
}

TEST(NetTable, TheSlowestPairsOfMany) {
  const std::string text = asText(outcomeOf(40), {}, 100);
  expectWords(text, {"and 8 more hosts", "tcp between hosts: 39 pairs, of which the slowest are",
                     "n1    n3    0, 2   fails", "Nothing to mend"});
}

TEST(NetTable, WhatWasLostOnTheWay) {
  Outcome outcome = outcomeOf(2);
  outcome.broken = "rank 1 left";
  const std::string text = asText(outcome, {}, 100);
  expectWords(text, {"The rest is missing: rank 1 left."});
  EXPECT_EQ(text.find("Nothing to mend"), std::string::npos);
}

TEST(NetTable, ForPrograms) {
  const Outcome outcome = outcomeOf(3);
  const auto all = nlohmann::json::parse(asJson(outcome, preflight::findingsOf(outcome.reports, outcome.pairs)));
  EXPECT_EQ(all["ranks"], 3);
  EXPECT_EQ(all["hosts"][1]["host"], "n2");
  EXPECT_EQ(all["hosts"][1]["locked_bytes"], 65536);
  EXPECT_TRUE(all["hosts"][1]["memory_bytes"].is_null());
  EXPECT_EQ(all["hosts"][1]["interfaces"][0]["mtu"], 1500);
  EXPECT_EQ(all["pairs"][0]["there_gb_s"], 2.5);
  EXPECT_EQ(all["pairs"][1]["why"], "no route to host");
  EXPECT_FALSE(all["pairs"][1]["works"]);
  EXPECT_EQ(all["findings"][0]["severity"], "error");
}

class Talking : public testing::Test {
 protected:
  Talking() : edges_(64 << 10, 8), ends_(tutti::test::connect(edges_, meetings_, *p2p_, *p2p_)) {}
  std::unique_ptr<link::Transport> p2p_ = transports::makeP2p();
  tutti::test::EdgePair edges_;
  tutti::test::MeetingPair meetings_;
  tutti::test::ConnectionPair ends_;
};

TEST_F(Talking, BothWaysAreMeasured) {
  const Terms terms{std::chrono::milliseconds(1), std::chrono::seconds(30), nullptr};
  Measured high;
  std::thread other([&] { high = talkAsHigher(*ends_[1], terms); });
  const Measured low = talkAsLower(*ends_[0], terms);
  other.join();
  EXPECT_GT(low.latencyUs, 0);
  EXPECT_GT(low.there, 0);
  EXPECT_GT(low.back, 0);
  EXPECT_EQ(low.back, high.back);
}

TEST_F(Talking, SilenceHasAnEnd) {
  const Terms terms{std::chrono::milliseconds(1), std::chrono::milliseconds(50), nullptr};
  try {
    talkAsLower(*ends_[0], terms);
    FAIL() << "nobody has answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_NE(std::string(error.what()).find("nothing came for 50 ms"), std::string::npos) << error.what();
  }
}

// All others sort by it.
TEST_F(Talking, AResultThatIsNoNumberIsNone) {
  constexpr uint32_t kResult = 6;  // as a lower rank says it at its end
  const double none = std::numeric_limits<double>::quiet_NaN();
  link::SendEnd& lower = ends_[0]->send;
  std::memcpy(lower.place(sizeof none), &none, sizeof none);
  lower.post({.operation = kResult}, sizeof none);
  const Terms terms{std::chrono::milliseconds(1), std::chrono::milliseconds(50), nullptr};
  try {
    talkAsHigher(*ends_[1], terms);
    FAIL() << "it was taken for a result";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote) << error.what();
  }
}

TEST_F(Talking, EndsWhenAllHasFailed) {
  const std::atomic<bool> over{true};
  EXPECT_THROW(talkAsHigher(*ends_[1], {std::chrono::milliseconds(1), std::chrono::hours(1), &over}), Error);
}

}  // namespace
}  // namespace tutti::doctor::net
