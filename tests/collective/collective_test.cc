// Every collective with every algorithm it has, over every transport that reaches ranks of one process, for odd sizes,
// in place and out of place. Values are small integers, so sums are exact in every type and in every order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "schedule/algorithm.h"
#include "support/api_ranks.h"
#include "support/sanitized.h"

namespace {

using namespace tutti;
using namespace tutti::test;

constexpr float kPoison = -12345.5f;

// The longest one takes several rounds. The sanitizers watch every access: there, fewer counts show as much.
const std::vector<size_t> kCounts = kThreadSanitized ? std::vector<size_t>{0, 3, 4099}
                                    : kSanitized     ? std::vector<size_t>{0, 1, 64, 4099, 40'003}
                                                     : std::vector<size_t>{0, 1, 2, 5, 63, 64, 1000, 4099, 100'003};

struct Case {
  Collective collective;
  schedule::Algorithm algorithm;
  const char* transport;
  int ranks;
  int channels;
};

std::string nameOfCase(const ::testing::TestParamInfo<Case>& info) {
  std::string name = fmt::format("{}_{}_{}_{}ranks_{}ch", nameOf(info.param.collective), nameOf(info.param.algorithm),
                                 info.param.transport, info.param.ranks, info.param.channels);
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  const Collective collectives[] = {Collective::kAllReduce, Collective::kAllGather,      Collective::kReduceScatter,
                                    Collective::kBroadcast, Collective::kReduce,         Collective::kGather,
                                    Collective::kScatter,   Collective::kAllToAll,       Collective::kAllGatherV,
                                    Collective::kAllToAllV, Collective::kReduceScatterV, Collective::kGatherV,
                                    Collective::kScatterV};
  for (const Collective collective : collectives)
    for (const auto algorithm : schedule::algorithmsFor(collective)) {
      const auto add = [&](const char* transport, std::vector<int> sizes) {
        if (kSanitized) sizes = {sizes.back()};
        for (const int ranks : sizes) cases.push_back({collective, algorithm, transport, ranks, 1});
      };
      add("p2p", {1, 2, 3, 4, 8, 5});
      add("tcp", {2, 7, 3});
      add("shm", {5, 2});
      cases.push_back({collective, algorithm, "p2p", 3, 3});
      // Ranks in place read and write one buffer, in the shares of many channels.
      if (countsArePrivate(collective) || collective == Collective::kAllToAll)
        for (const auto& [transport, ranks, channels] : {std::tuple("shm", 6, 2), {"tcp", 4, 16}, {"p2p", 8, 16}})
          cases.push_back({collective, algorithm, transport, ranks, channels});
    }
  return cases;
}

class CollectiveTest : public ::testing::TestWithParam<Case> {};

float value(int rank, size_t i) { return static_cast<float>((static_cast<size_t>(rank) * 7 + i * 3) % 23); }

std::vector<float> contribution(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = value(rank, i);
  return values;
}

float sumOver(int ranks, size_t i) {
  float sum = 0;
  for (int r = 0; r < ranks; ++r) sum += value(r, i);
  return sum;
}

// One call of the collective under test; returns what should be in the receive buffer (elements that must stay as they
// were are kPoison) together with what is.
class Exchange {
 public:
  Exchange(const Case& test, tuttiComm_t comm, int rank) : test_(test), comm_(comm), rank_(rank), n_(test.ranks) {}

  void run(size_t count, bool inPlace, int root) {
    count_ = count;
    root_ = root;
    symmetric_ = inPlace || inPlaceOnSome_;
    prepare();
    std::vector<float> memory(8 + std::max(send_.size(), want_.size()) + 8, kPoison);
    float* recv = memory.data() + 8;
    const float* send = send_.data();
    if (inPlace) {
      send = recv + sendOffset_;
      recv += recvOffset_;
      std::copy(send_.begin(), send_.end(), memory.begin() + 8 + static_cast<ptrdiff_t>(sendOffset_));
    }
    std::vector<float> expected = memory;
    std::copy(want_.begin(), want_.end(), expected.begin() + (recv - memory.data()));
    call(send, recv);
    for (size_t i = 0; i < memory.size(); ++i)
      ASSERT_EQ(memory[i], expected[i]) << "element " << i << " of " << want_.size() << ", rank " << rank_ << " of "
                                        << n_ << ", root " << root << (inPlace ? ", in place" : "");
  }
  // On this rank: of an all-to-all every rank may choose for itself, if the counts of a pair are alike.
  void runInPlaceOnSome(size_t count) {
    inPlaceOnSome_ = true;
    run(count, rank_ % 3 != 1, 0);
    inPlaceOnSome_ = false;
  }
  bool exchanges() const { return plainOf(test_.collective) == Collective::kAllToAll; }
  bool rooted() const { return hasRoot(test_.collective); }

 private:
  size_t n() const { return static_cast<size_t>(n_); }
  size_t self() const { return static_cast<size_t>(rank_); }
  // Counts of the v-variants: uneven, some of them 0.
  size_t part(size_t rank) const { return rank % 3 == 1 ? 0 : count_ + rank * 5; }
  size_t partOffset(size_t rank) const {
    size_t offset = 0;
    for (size_t r = 0; r < rank; ++r) offset += part(r);
    return offset;
  }
  size_t pairCount(size_t from, size_t to) const {
    if (symmetric_) return (from + to) % 4 == 1 ? 0 : count_ + from * to;
    return (from + 2 * to) % 4 == 1 ? 0 : count_ + from + 3 * to;
  }

  void prepare() {
    sendOffset_ = recvOffset_ = 0;
    want_.clear();
    const bool atRoot = rank_ == root_;
    switch (test_.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
        send_ = contribution(rank_, count_);
        if (test_.collective == Collective::kReduce && !atRoot) break;
        for (size_t i = 0; i < count_; ++i) want_.push_back(sumOver(n_, i));
        break;
      case Collective::kBroadcast:
        send_ = contribution(rank_, count_);
        want_ = contribution(root_, count_);
        break;
      case Collective::kAllGather:
      case Collective::kGather:
        send_ = contribution(rank_, count_);
        if (test_.collective == Collective::kGather && !atRoot) break;
        sendOffset_ = self() * count_;
        for (int r = 0; r < n_; ++r)
          for (size_t i = 0; i < count_; ++i) want_.push_back(value(r, i));
        break;
      case Collective::kReduceScatter:
        send_ = contribution(rank_, count_ * n());
        recvOffset_ = self() * count_;
        for (size_t i = 0; i < count_; ++i) want_.push_back(sumOver(n_, self() * count_ + i));
        break;
      case Collective::kScatter:
        send_ = contribution(root_, count_ * n());
        recvOffset_ = self() * count_;
        for (size_t i = 0; i < count_; ++i) want_.push_back(value(root_, self() * count_ + i));
        break;
      case Collective::kAllToAll:
        send_ = contribution(rank_, count_ * n());
        for (int r = 0; r < n_; ++r)
          for (size_t i = 0; i < count_; ++i) want_.push_back(value(r, self() * count_ + i));
        break;
      default:
        prepareVariant();
    }
  }

  void prepareVariant() {
    if (test_.collective == Collective::kGatherV) {
      send_ = contribution(rank_, part(self()));
      if (rank_ != root_) return;
      sendOffset_ = partOffset(self());
      for (size_t r = 0; r < n(); ++r)
        for (size_t i = 0; i < part(r); ++i) want_.push_back(value(static_cast<int>(r), i));
    } else if (test_.collective == Collective::kScatterV) {
      send_ = contribution(root_, partOffset(n()));
      recvOffset_ = partOffset(self());
      for (size_t i = 0; i < part(self()); ++i) want_.push_back(value(root_, recvOffset_ + i));
    } else if (test_.collective == Collective::kAllGatherV) {
      send_ = contribution(rank_, part(self()));
      sendOffset_ = partOffset(self());
      for (size_t r = 0; r < n(); ++r)
        for (size_t i = 0; i < part(r); ++i) want_.push_back(value(static_cast<int>(r), i));
    } else if (test_.collective == Collective::kReduceScatterV) {
      send_ = contribution(rank_, partOffset(n()));
      recvOffset_ = partOffset(self());
      for (size_t i = 0; i < part(self()); ++i) want_.push_back(sumOver(n_, recvOffset_ + i));
    } else {
      send_.clear();
      for (size_t to = 0; to < n(); ++to)
        for (size_t i = 0; i < pairCount(self(), to); ++i) send_.push_back(value(rank_ + static_cast<int>(to), i));
      for (size_t from = 0; from < n(); ++from)
        for (size_t i = 0; i < pairCount(from, self()); ++i) want_.push_back(value(static_cast<int>(from) + rank_, i));
    }
  }

  void call(const float* send, float* recv) {
    const auto type = tuttiFloat32;
    switch (test_.collective) {
      case Collective::kAllReduce:
        CHECK_TUTTI(tuttiAllReduce(send, recv, count_, type, tuttiSum, comm_, nullptr));
        break;
      case Collective::kReduce:
        CHECK_TUTTI(tuttiReduce(send, recv, count_, type, tuttiSum, root_, comm_, nullptr));
        break;
      case Collective::kBroadcast:
        CHECK_TUTTI(tuttiBroadcast(send, recv, count_, type, root_, comm_, nullptr));
        break;
      case Collective::kAllGather:
        CHECK_TUTTI(tuttiAllGather(send, recv, count_, type, comm_, nullptr));
        break;
      case Collective::kGather:
        CHECK_TUTTI(tuttiGather(send, recv, count_, type, root_, comm_, nullptr));
        break;
      case Collective::kReduceScatter:
        CHECK_TUTTI(tuttiReduceScatter(send, recv, count_, type, tuttiSum, comm_, nullptr));
        break;
      case Collective::kScatter:
        CHECK_TUTTI(tuttiScatter(send, recv, count_, type, root_, comm_, nullptr));
        break;
      case Collective::kAllToAll:
        CHECK_TUTTI(tuttiAllToAll(send, recv, count_, type, comm_, nullptr));
        break;
      default:
        callVariant(send, recv);
    }
  }

  void callVariant(const float* send, float* recv) {
    std::vector<size_t> counts(n()), offsets(n()), sendCounts(n()), sendOffsets(n());
    if (test_.collective != Collective::kAllToAllV) {
      for (size_t r = 0; r < n(); ++r) counts[r] = part(r), offsets[r] = partOffset(r);
      if (hasRoot(test_.collective)) return callRooted(send, recv, counts, offsets);
      if (test_.collective == Collective::kAllGatherV)
        CHECK_TUTTI(tuttiAllGatherV(send, recv, counts.data(), offsets.data(), tuttiFloat32, comm_, nullptr));
      else
        CHECK_TUTTI(tuttiReduceScatterV(send, recv, counts.data(), tuttiFloat32, tuttiSum, comm_, nullptr));
      return;
    }
    for (size_t r = 0; r < n(); ++r) sendCounts[r] = pairCount(self(), r), counts[r] = pairCount(r, self());
    std::exclusive_scan(sendCounts.begin(), sendCounts.end(), sendOffsets.begin(), size_t{0});
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), size_t{0});
    CHECK_TUTTI(tuttiAllToAllV(send, sendCounts.data(), sendOffsets.data(), recv, counts.data(), offsets.data(),
                               tuttiFloat32, comm_, nullptr));
  }

  // Elsewhere than at the root nobody has tables.
  void callRooted(const float* send, float* recv, const std::vector<size_t>& counts,
                  const std::vector<size_t>& offsets) {
    const bool atRoot = rank_ == root_;
    const size_t *const many = atRoot ? counts.data() : nullptr, *const places = atRoot ? offsets.data() : nullptr;
    if (test_.collective == Collective::kGatherV)
      CHECK_TUTTI(tuttiGatherV(send, part(self()), recv, many, places, tuttiFloat32, root_, comm_, nullptr));
    else
      CHECK_TUTTI(tuttiScatterV(send, many, places, recv, part(self()), tuttiFloat32, root_, comm_, nullptr));
  }

  const Case& test_;
  tuttiComm_t comm_;
  int rank_, n_, root_ = 0;
  size_t count_ = 0, sendOffset_ = 0, recvOffset_ = 0;
  bool inPlaceOnSome_ = false, symmetric_ = false;
  std::vector<float> send_, want_;
};

TEST_P(CollectiveTest, GivesEveryRankTheRightValues) {
  const Case& test = GetParam();
  tuttiConfig_t config = testConfig();
  config.transports = test.transport;
  const std::string algorithm(nameOf(test.algorithm));
  config.algorithm = algorithm.c_str();
  config.channels = test.channels;
  withCommunicators(test.ranks, config, [&](tuttiComm_t comm, int rank) {
    Exchange exchange(test, comm, rank);
    for (const size_t count : kCounts) {
      for (int root = 0; root<(exchange.rooted() ? test.ranks : 1); root += count> 1000 ? 3 : 1) {
        exchange.run(count, false, root);
        exchange.run(count, true, root);
        if (exchange.exchanges()) exchange.runInPlaceOnSome(count);
      }
    }
    tuttiCommStats_t stats{};
    stats.size = sizeof stats;
    CHECK_TUTTI(tuttiCommGetStats(comm, &stats));
    EXPECT_EQ(stats.lastAlgorithm, algorithm);
    if (test.ranks > 1) {
      EXPECT_STREQ(stats.lastTransports, test.transport);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveTest, ::testing::ValuesIn(allCases()), nameOfCase);

}  // namespace
