// Communicators that grow by ranks that join, that leave ranks behind, that are duplicated, and split by host.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/api_ranks.h"
#include "support/variables.h"
#include "tutti/tutti.hpp"

namespace {

using namespace tutti::test;

struct Owned {
  tuttiComm_t comm = nullptr;
  Owned() = default;
  Owned(Owned&& other) noexcept : comm(std::exchange(other.comm, nullptr)) {}
  ~Owned() { tuttiCommDestroy(comm); }
};

tuttiConfig_t configOver(const std::string& transports) {
  tuttiConfig_t config = testConfig();
  config.transports = transports.c_str();
  return config;
}

void expectPlace(tuttiComm_t comm, int rank, int size) {
  int found = -1, count = 0;
  CHECK_TUTTI(tuttiCommUserRank(comm, &found));
  CHECK_TUTTI(tuttiCommCount(comm, &count));
  EXPECT_EQ(found, rank);
  EXPECT_EQ(count, size);
}

void expectReduces(tuttiComm_t comm, int size) {
  std::vector<int64_t> data(5'000, 1);
  CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), data.size(), tuttiInt64, tuttiSum, comm, nullptr));
  EXPECT_EQ(data, std::vector<int64_t>(5'000, size));
}

void expectText(const std::string& text, std::initializer_list<std::string> words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

// Some ranks of a communicator, and others that are none of it; each on a thread of its own.
class Crowd {
 public:
  Crowd(int old, int all, const tuttiConfig_t& config) : old_(old), all_(all), config_(config), ranks_(size_t(all)) {
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    runRanks(old, [&](int r) { CHECK_TUTTI(tuttiCommInitRankConfig(&at(r), old_, id, r, &config_)); });
  }
  tuttiComm_t& at(int rank) { return ranks_[size_t(rank)].comm; }
  tuttiUniqueId newId(int maker) {
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiCommGetUniqueId(at(maker), &id));
    return id;
  }
  // As a program would.
  tuttiResult_t grow(int rank, const tuttiUniqueId* id, tuttiComm_t* child, const tuttiConfig_t* config = nullptr,
                     int ranks = 0) {
    if (ranks == 0) ranks = all_;
    if (rank < old_) return tuttiCommGrow(at(rank), ranks, id, -1, child, config);
    return tuttiCommGrow(nullptr, ranks, id, rank, child, config ? config : &config_);
  }
  void expectStillWorks() {
    runRanks(old_, [&](int r) { expectReduces(at(r), old_); });
  }
  int old() const { return old_; }
  int all() const { return all_; }

 private:
  int old_, all_;
  tuttiConfig_t config_;
  std::vector<Owned> ranks_;
};

class Growing : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Growing, testing::Values("shm", "tcp", "p2p"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(Growing, OldRanksKeepTheirNumbersAndOthersFollow) {
  const std::string transports = GetParam();
  using Sizes = std::array<int, 3>;
  for (const auto& [old, all, maker] : {Sizes{1, 2, 0}, Sizes{1, 4, 0}, Sizes{2, 3, 1}, Sizes{3, 8, 2}}) {
    Crowd crowd(old, all, configOver(transports));
    const tuttiUniqueId id = crowd.newId(maker);
    runRanks(all, [&, maker = maker](int r) {
      Owned child;
      CHECK_TUTTI(crowd.grow(r, r == maker || r >= crowd.old() ? &id : nullptr, &child.comm));
      expectPlace(child.comm, r, crowd.all());
      expectReduces(child.comm, crowd.all());
      if (r < crowd.old()) expectReduces(crowd.at(r), crowd.old());
      expectReduces(child.comm, crowd.all());
    });
  }
}

TEST_P(Growing, AndShrinkingAndGrowingAgain) {
  const std::string transports = GetParam();
  Crowd crowd(2, 4, configOver(transports));
  const tuttiUniqueId id = crowd.newId(0);
  std::array<tuttiUniqueId, 1> again;
  std::atomic<bool> made{false};
  runRanks(4, [&](int r) {
    Owned four, two, three;
    CHECK_TUTTI(crowd.grow(r, r == 1 ? nullptr : &id, &four.comm));
    const int leftOut[] = {2, 0, 2};
    if (r % 2 == 1) {
      CHECK_TUTTI(tuttiCommShrink(four.comm, leftOut, 3, &two.comm, nullptr, 0));
      expectPlace(two.comm, r / 2, 2);
      expectReduces(two.comm, 2);
      if (r == 3) CHECK_TUTTI(tuttiCommGetUniqueId(two.comm, &again[0]));
      if (r == 3) made = true;
      CHECK_TUTTI(tuttiCommGrow(two.comm, 3, r == 3 ? &again[0] : nullptr, -1, &three.comm, nullptr));
    } else if (r == 0) {
      while (!made) std::this_thread::yield();
      const auto config = configOver(transports);
      CHECK_TUTTI(tuttiCommGrow(nullptr, 3, &again[0], 2, &three.comm, &config));
    } else {
      return;
    }
    expectReduces(three.comm, 3);
  });
}

TEST_P(Growing, Duplicates) {
  const std::string transports = GetParam();
  withCommunicators(3, configOver(transports), [](tuttiComm_t comm, int rank) {
    Owned twin;
    CHECK_TUTTI(tuttiCommDuplicate(comm, &twin.comm, nullptr));
    expectPlace(twin.comm, rank, 3);
    // On the one and on the other at once, each rank in an order of its own: streams of the two are apart.
    tuttiStream_t one, other;
    CHECK_TUTTI(tuttiStreamCreate(&one, 0));
    CHECK_TUTTI(tuttiStreamCreate(&other, 0));
    std::array<int, 2> values{1, 10};
    for (const int which : {rank % 2, 1 - rank % 2})
      CHECK_TUTTI(tuttiAllReduce(&values[size_t(which)], &values[size_t(which)], 1, tuttiInt32, tuttiSum,
                                 which == 0 ? comm : twin.comm, which == 0 ? one : other));
    CHECK_TUTTI(tuttiStreamDestroy(one));
    CHECK_TUTTI(tuttiStreamDestroy(other));
    EXPECT_EQ(values, (std::array<int, 2>{3, 30}));
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));  // none is still in a call of the twin
    CHECK_TUTTI(tuttiCommRevoke(twin.comm, 0));
    expectReduces(comm, 3);
  });
}

TEST_P(Growing, ShrinksWithoutRanksThatAreBusy) {
  const std::string transports = GetParam();
  for (const int outcast : {0, 2}) {
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    runRanks(4, [&](int r) {
      const auto config = configOver(transports);
      Owned comm, child;
      CHECK_TUTTI(tuttiCommInitRankConfig(&comm.comm, 4, id, r, &config));
      expectReduces(comm.comm, 4);
      if (r == outcast) {  // in a call that the others never make: it ends when they leave
        int value = 0;
        EXPECT_EQ(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm.comm, nullptr), tuttiRemoteError);
        expectText(tuttiGetLastError(comm.comm), {"rank "});
        return;
      }
      CHECK_TUTTI(tuttiCommShrink(comm.comm, &outcast, 1, &child.comm, nullptr, 0));
      expectPlace(child.comm, r - (r > outcast), 3);
      expectReduces(child.comm, 3);
    });
  }
}

// ---- What goes wrong ----------------------------------------------------------------------------------------------

// Every rank's error of one attempt, and the old communicator as it was.
struct Attempt {
  tuttiResult_t result = tuttiSuccess;
  std::string text;
};
std::vector<Attempt> attempt(Crowd& crowd, int ranks,
                             const std::function<tuttiResult_t(int rank, tuttiComm_t* child)>& call) {
  std::vector<Attempt> all(static_cast<size_t>(ranks));
  runRanks(ranks, [&](int r) {
    Owned child;
    Attempt& mine = all[size_t(r)];
    mine.result = call(r, &child.comm);
    mine.text = tuttiGetLastError(nullptr);
  });
  crowd.expectStillWorks();
  return all;
}

TEST(GrowingGoesWrong, NoIdOrTwo) {
  Crowd crowd(3, 4, testConfig());
  for (const Attempt& one :
       attempt(crowd, 3, [&](int r, tuttiComm_t*child) { return crowd.grow(r, nullptr, child); })) {
    EXPECT_EQ(one.result, tuttiInvalidUsage);
    expectText(one.text, {"no rank of the communicator brings a unique id", "tuttiCommGetUniqueId"});
  }
  const std::array ids{crowd.newId(0), crowd.newId(2)};
  for (const Attempt& one : attempt(
           crowd, 4, [&](int r, tuttiComm_t*child) { return crowd.grow(r, r == 1 ? nullptr : &ids[r == 2], child); })) {
    EXPECT_NE(one.result, tuttiSuccess);
    expectText(one.text, {"ranks 0, 2 bring a unique id each"});
  }
}

TEST(GrowingGoesWrong, SizesThatDifferOrAreTooSmall) {
  Crowd crowd(3, 4, testConfig());
  const tuttiUniqueId first = crowd.newId(1);
  const auto differ = attempt(crowd, 4, [&](int r, tuttiComm_t* child) {
    return crowd.grow(r, r % 2 == 1 ? &first : nullptr, child, nullptr, r == 2 ? 5 : 4);
  });
  for (size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(differ[r].result, r < 3 ? tuttiInvalidUsage : tuttiRemoteError);
    expectText(differ[r].text, {"the ranks disagree on the size to grow to: rank 0 (", " says 4, rank 2 (", " says 5"});
  }
  const tuttiUniqueId second = crowd.newId(0);
  for (const int ranks : {3, 2, 0, -5, 1 << 20})
    for (const Attempt& one : attempt(crowd, 3, [&](int r, tuttiComm_t*child) {
           return tuttiCommGrow(crowd.at(r), ranks, r == 0 ? &second : nullptr, -1, child, nullptr);
         })) {
      EXPECT_EQ(one.result, tuttiInvalidUsage);
      expectText(one.text, {"a communicator of 3 grows to 4 to "});
    }
}

TEST(GrowingGoesWrong, AnArgumentOfOneRank) {
  Crowd crowd(3, 4, testConfig());
  const tuttiUniqueId id = crowd.newId(0);
  const auto all = attempt(crowd, 4, [&](int r, tuttiComm_t* child) {
    if (r == 1) return tuttiCommGrow(crowd.at(r), 4, nullptr, 1, child, nullptr);
    return crowd.grow(r, r == 2 ? nullptr : &id, child);
  });
  EXPECT_EQ(all[1].result, tuttiInvalidArgument);
  expectText(all[1].text, {"tuttiCommGrow: rank is 1: a rank of comm keeps its number, and gives -1"});
  for (const size_t r : {size_t{0}, size_t{2}, size_t{3}}) {
    EXPECT_EQ(all[r].result, tuttiRemoteError);
    expectText(all[r].text, {"rank 1 (", "cannot grow the communicator: tuttiCommGrow: rank is 1"});
  }
  const tuttiUniqueId other = crowd.newId(0);
  for (const Attempt& one : attempt(crowd, 3, [&](int r, tuttiComm_t*child) {
         return crowd.grow(r, r == 0 ? &other : nullptr, r == 2 ? nullptr : child);
       }))
    expectText(one.text, {"tuttiCommGrow: child is NULL"});
  tuttiUniqueId garbage{};
  for (const Attempt& one :
       attempt(crowd, 3, [&](int r, tuttiComm_t*child) { return crowd.grow(r, r == 1 ? &garbage : nullptr, child); }))
    expectText(one.text, {"unique id"});
}

TEST(GrowingGoesWrong, ArgumentsOfThoseWhoJoin) {
  Crowd crowd(1, 2, testConfig());
  const tuttiUniqueId id = crowd.newId(0);
  Owned child;
  EXPECT_EQ(tuttiCommGrow(nullptr, 2, nullptr, 1, &child.comm, nullptr), tuttiInvalidArgument);
  EXPECT_EQ(tuttiCommGrow(nullptr, 2, &id, -1, &child.comm, nullptr), tuttiInvalidArgument);
  expectText(tuttiGetLastError(nullptr), {"rank is -1, which a rank of comm gives, but comm is NULL"});
  EXPECT_EQ(tuttiCommGrow(nullptr, 2, &id, 2, &child.comm, nullptr), tuttiInvalidArgument);
  EXPECT_EQ(tuttiCommGrow(nullptr, 2, &id, 1, nullptr, nullptr), tuttiInvalidArgument);
  tuttiUniqueId none;
  EXPECT_EQ(tuttiCommGetUniqueId(nullptr, &none), tuttiInvalidArgument);
  EXPECT_EQ(tuttiCommGetUniqueId(crowd.at(0), nullptr), tuttiInvalidArgument);
}

// One that joins comes with the number of an old one.
TEST(GrowingGoesWrong, ANumberThatIsTaken) {
  Crowd crowd(2, 3, testConfig());
  const tuttiUniqueId id = crowd.newId(0);
  const auto all = attempt(crowd, 3, [&](int r, tuttiComm_t* child) {
    const auto config = testConfig();
    if (r == 2) return tuttiCommGrow(nullptr, 3, &id, 1, child, &config);
    return crowd.grow(r, r == 0 ? &id : nullptr, child);
  });
  for (const Attempt& one : all) {
    EXPECT_EQ(one.result, tuttiInvalidUsage);
    expectText(one.text, {"two processes claim rank 1"});
  }
}

TEST(GrowingGoesWrong, NobodyComes) {
  Crowd crowd(2, 4, testConfig());
  const tuttiUniqueId id = crowd.newId(1);
  tuttiConfig_t hasty = testConfig();
  hasty.joinTimeoutMs = 2000;
  const auto all = attempt(crowd, 3, [&](int r, tuttiComm_t* child) {
    return crowd.grow(r, r == 0 ? nullptr : &id, child, r < 2 ? &hasty : nullptr);
  });
  for (const Attempt& one : all) {
    EXPECT_EQ(one.result, tuttiTimeout);
    expectText(one.text, {"3 of 4 ranks came", "missing: rank 3"});
  }
  // Who comes later hears the same, and a new id makes it good.
  const auto late = attempt(crowd, 1, [&](int, tuttiComm_t* child) { return crowd.grow(3, &id, child); });
  EXPECT_NE(late[0].result, tuttiSuccess);
  const tuttiUniqueId fresh = crowd.newId(0);
  for (const Attempt& one :
       attempt(crowd, 4, [&](int r, tuttiComm_t*child) { return crowd.grow(r, r == 1 ? nullptr : &fresh, child); }))
    EXPECT_EQ(one.result, tuttiSuccess) << one.text;
}

// Of a size that none can have it cannot be known who has yet to come: the root stays for all.
TEST(GrowingGoesWrong, WhoJoinsLaterHearsOfASizeThatIsRefused) {
  const tuttiConfig_t config = testConfig();
  for (const int ranks : {1, -5}) {
    tuttiComm_t comm = nullptr, child = nullptr;
    CHECK_TUTTI(tuttiCommInitAll(&comm, 1, nullptr));
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiCommGetUniqueId(comm, &id));
    EXPECT_EQ(tuttiCommGrow(comm, ranks, &id, -1, &child, &config), tuttiInvalidUsage);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(tuttiCommGrow(nullptr, 2, &id, 1, &child, &config), tuttiRemoteError) << tuttiGetLastError(nullptr);
    CHECK_TUTTI(tuttiCommDestroy(comm));
  }
}

TEST(GrowingGoesWrong, AnIdThatWasUsed) {
  Crowd crowd(2, 3, testConfig());
  const tuttiUniqueId id = crowd.newId(0);
  for (const tuttiResult_t expected : {tuttiSuccess, tuttiInvalidUsage})
    for (const Attempt& one :
         attempt(crowd, 3, [&](int r, tuttiComm_t*child) { return crowd.grow(r, r == 1 ? nullptr : &id, child); })) {
      EXPECT_EQ(one.result, expected);
      if (expected != tuttiSuccess)
        expectText(one.text,
                   {"a communicator has been made with this unique id already", "tuttiCommGetUniqueId, again"});
    }
}

TEST(GrowingGoesWrong, AnotherCallOnOneRank) {
  Crowd crowd(2, 3, testConfig());
  const tuttiUniqueId id = crowd.newId(0);
  std::vector<std::string> texts(3);
  runRanks(3, [&](int r) {
    Owned child;
    if (r == 1)
      EXPECT_NE(tuttiCommDuplicate(crowd.at(1), &child.comm, nullptr), tuttiSuccess);
    else
      EXPECT_NE(crowd.grow(r, &id, &child.comm), tuttiSuccess);
    texts[size_t(r)] = tuttiGetLastError(nullptr);
  });
  for (const std::string& text : texts)
    expectText(text, {"calls do not match: rank 0 (", ") is in tuttiCommGrow, rank 1 (", ") is in tuttiCommDuplicate"});
}

// An old rank that stops the communicator: those who join hear why at once, and not at their deadline.
TEST(GrowingGoesWrong, TheOldOneIsStoppedBeforeAllHaveCalled) {
  for (const bool aborts : {false, true})
    for (const int quitter : {0, 1, 2}) {
      Crowd crowd(3, 5, testConfig());
      const tuttiUniqueId id = crowd.newId(0);
      runRanks(4, [&](int r) {  // rank 4 never comes
        Owned child;
        if (r == quitter) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          if (aborts) {
            CHECK_TUTTI(tuttiCommAbort(std::exchange(crowd.at(r), nullptr)));
            return;
          }
          CHECK_TUTTI(tuttiCommRevoke(crowd.at(r), 0));
          if (r != 0) return;
        }
        EXPECT_NE(crowd.grow(r, r == 0 || r == 3 ? &id : nullptr, &child.comm), tuttiSuccess);
        if (r < 3) expectText(tuttiGetLastError(nullptr), {aborts ? "called tuttiCommAbort" : "revoked"});
        if (r == 3 && aborts && quitter == 0)
          expectText(tuttiGetLastError(nullptr), {"rank 0 (", "has left the communicator that was to grow"});
        else if (r == 3)
          expectText(tuttiGetLastError(nullptr), {"rank 0 (", "does not grow its communicator: rank ",
                                                  aborts ? "called tuttiCommAbort" : "revoked the communicator"});
      });
    }
}

TEST(GrowingGoesWrong, TheOldOneIsStoppedWhileAllWaitForOneThatJoins) {
  for (const int quitter : {0, 1}) {
    Crowd crowd(2, 4, testConfig());
    const tuttiUniqueId id = crowd.newId(0);
    std::thread stops([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      tuttiCommRevoke(crowd.at(quitter), 0);
    });
    runRanks(3, [&](int r) {  // rank 3 never comes
      Owned child;
      EXPECT_EQ(crowd.grow(r, r == 1 ? nullptr : &id, &child.comm), tuttiRemoteError);
      expectText(tuttiGetLastError(nullptr), {"revoked the communicator"});
    });
    stops.join();
  }
}

TEST(GrowingGoesWrong, OfAStoppedCommunicator) {
  Crowd crowd(2, 3, testConfig());
  const tuttiUniqueId id = crowd.newId(0);
  CHECK_TUTTI(tuttiCommRevoke(crowd.at(0), 0));
  tuttiResult_t known = tuttiSuccess;
  while (known == tuttiSuccess) CHECK_TUTTI(tuttiCommGetAsyncError(crowd.at(1), &known));
  tuttiUniqueId other;
  EXPECT_EQ(tuttiCommGetUniqueId(crowd.at(1), &other), tuttiRemoteError);
  runRanks(3, [&](int r) {
    Owned child;
    EXPECT_EQ(crowd.grow(r, r == 1 ? nullptr : &id, &child.comm), tuttiRemoteError);
    expectText(tuttiGetLastError(nullptr), {"revoked the communicator"});
  });
}

// ---- In the background and in groups ------------------------------------------------------------------------------

tuttiResult_t madeWith(tuttiComm_t comm) {
  tuttiResult_t state = tuttiInProgress;
  while (state == tuttiInProgress) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
  }
  return state;
}

TEST(GrowingBesides, InTheBackground) {
  Crowd crowd(2, 3, testConfig());
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  const tuttiUniqueId id = crowd.newId(0);
  std::array<Owned, 3> children;
  for (int r = 0; r < 3; ++r)
    EXPECT_EQ(crowd.grow(r, r == 1 ? nullptr : &id, &children[size_t(r)].comm, &config), tuttiInProgress);
  for (Owned& child : children) EXPECT_EQ(madeWith(child.comm), tuttiSuccess) << tuttiGetLastError(child.comm);
  runRanks(3, [&](int r) { expectReduces(children[size_t(r)].comm, 3); });
  crowd.expectStillWorks();
}

TEST(GrowingBesides, InAGroupOfOneThread) {
  Crowd crowd(2, 3, testConfig());
  const tuttiUniqueId id = crowd.newId(0);
  std::array<Owned, 3> grown;
  std::array<Owned, 2> twins;
  CHECK_TUTTI(tuttiGroupStart());
  for (int r = 0; r < 3; ++r) CHECK_TUTTI(crowd.grow(r, r == 1 ? nullptr : &id, &grown[size_t(r)].comm));
  CHECK_TUTTI(tuttiGroupEnd());
  CHECK_TUTTI(tuttiGroupStart());
  for (int r = 0; r < 2; ++r) CHECK_TUTTI(tuttiCommDuplicate(crowd.at(r), &twins[size_t(r)].comm, nullptr));
  CHECK_TUTTI(tuttiGroupEnd());
  runRanks(3, [&](int r) { expectReduces(grown[size_t(r)].comm, 3); });
  runRanks(2, [&](int r) { expectReduces(twins[size_t(r)].comm, 2); });
}

TEST(GrowingBesides, InCpp) {
  const tutti::UniqueId id = tutti::UniqueId::create();
  std::optional<tutti::UniqueId> more;
  std::atomic<bool> made{false};
  runRanks(3, [&](int r) {
    if (r == 2) {
      while (!made) std::this_thread::yield();
      tutti::Communicator joined = tutti::Communicator::joinGrowing(3, *more, 2);
      EXPECT_EQ(joined.rank(), 2);
      joined.barrier();
      return;
    }
    tutti::Communicator old = tutti::Communicator::join(2, id, r);
    if (r == 1) more = old.uniqueIdToGrow();
    if (r == 1) made = true;
    tutti::Communicator grown = old.grow(3, r == 1 ? &*more : nullptr);
    EXPECT_EQ(grown.size(), 3);
    grown.barrier();
    EXPECT_EQ(old.duplicate().size(), 2);
    EXPECT_EQ(old.splitByHost().size(), 2);
    const std::array leftOut{1};
    if (r == 0) {
      EXPECT_EQ(old.shrink(leftOut).size(), 1);
    }
    old.barrier();
  });
}

// ---- By host ------------------------------------------------------------------------------------------------------

// Ranks of this process, each on the host that is named for it.
std::vector<Owned> ranksOn(const std::vector<std::string>& hosts, const tuttiConfig_t& given) {
  tuttiConfig_t config = given;
  config.nonBlocking = 1;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::vector<Owned> ranks(hosts.size());
  for (size_t r = 0; r < hosts.size(); ++r) {
    const Settings host({{"TUTTI_HOST_ID", hosts[r]}});  // read during the call
    EXPECT_EQ(tuttiCommInitRankConfig(&ranks[r].comm, int(hosts.size()), id, int(r), &config), tuttiInProgress);
  }
  for (Owned& rank : ranks) EXPECT_EQ(madeWith(rank.comm), tuttiSuccess);
  return ranks;
}

TEST(SplitByHost, GroupsThoseOfAHostThatSaySo) {
  const tuttiConfig_t config = testConfig();
  auto ranks = ranksOn({"a", "b", "a", "b", "a", "c"}, config);
  runRanks(6, [&](int r) {
    Owned child;
    const int key = r == 4 ? -1 : 0;
    const int color = r == 3 ? 0 : TUTTI_SPLIT_HOST;
    CHECK_TUTTI(tuttiCommSplit(ranks[size_t(r)].comm, color, key, &child.comm, &config));
    const std::vector<std::array<int, 2>> places{{1, 3}, {0, 1}, {2, 3}, {0, 1}, {0, 3}, {0, 1}};
    expectPlace(child.comm, places[size_t(r)][0], places[size_t(r)][1]);
    expectReduces(child.comm, places[size_t(r)][1]);
  });
  runRanks(6, [&](int r) {
    Owned child;
    CHECK_TUTTI(
        tuttiCommSplit(ranks[size_t(r)].comm, r < 2 ? TUTTI_SPLIT_NOCOLOR : TUTTI_SPLIT_HOST, 0, &child.comm, &config));
    EXPECT_EQ(child.comm == nullptr, r < 2);
    if (r >= 2) expectReduces(child.comm, r == 2 || r == 4 ? 2 : 1);
  });
}

TEST(SplitByHost, OtherNegativeColoursAreNone) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    tuttiComm_t child = nullptr;
    EXPECT_EQ(tuttiCommSplit(comm, -3, 0, &child, nullptr), tuttiInvalidArgument);
    expectText(tuttiGetLastError(comm), {"color is -3: 0 or more, TUTTI_SPLIT_NOCOLOR or TUTTI_SPLIT_HOST"});
  });
}

// ---- Lists of ranks to leave out ----------------------------------------------------------------------------------

TEST(LeavingOut, ChecksTheList) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    tuttiComm_t child = nullptr;
    const auto shrink = [&](std::vector<int> list, int count) {
      return tuttiCommShrink(comm, list.data(), count, &child, nullptr, 0);
    };
    EXPECT_EQ(shrink({2}, 1), tuttiInvalidArgument);
    expectText(tuttiGetLastError(comm), {"tuttiCommShrink: leftOut[0] is 2"});
    EXPECT_EQ(shrink({1 - rank, -1}, 2), tuttiInvalidArgument);
    EXPECT_EQ(shrink({rank}, 1), tuttiInvalidArgument);
    expectText(tuttiGetLastError(comm), {"this rank itself: who is left out does not call"});
    EXPECT_EQ(shrink({0}, -1), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommShrink(comm, nullptr, 1, &child, nullptr, 0), tuttiInvalidArgument);
    CHECK_TUTTI(shrink({1, 1}, 0));  // and nothing has come of all that
    expectReduces(child, 2);
    CHECK_TUTTI(tuttiCommDestroy(child));
  });
}

TEST(LeavingOut, ListsThatDifferAreAnErrorOnAll) {
  withCommunicators(4, testConfig(), [](tuttiComm_t comm, int rank) {
    if (rank == 3) return;
    Owned child;
    const int three = 3;
    EXPECT_EQ(tuttiCommShrink(comm, &three, rank == 1 ? 0 : 1, &child.comm, nullptr, 0), tuttiInvalidUsage);
    expectText(tuttiGetLastError(comm), {"the ranks disagree on whom to leave out: rank ", " names rank 3", " none"});
    CHECK_TUTTI(tuttiCommShrink(comm, &three, 1, &child.comm, nullptr, 0));
    expectReduces(child.comm, 3);
  });
}

}  // namespace
