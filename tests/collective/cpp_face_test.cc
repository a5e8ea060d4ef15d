#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "tutti/tutti.hpp"

// A type of the user's own, as the header invites to.
struct Half {
  uint16_t bits;
};
template <>
inline constexpr tuttiDataType_t tutti::kDataTypeOf<Half> = tuttiFloat16;

namespace {

using tutti::Communicator;
using tutti::kDataTypeOf;
using tutti::Stream;

static_assert(kDataTypeOf<float> == tuttiFloat32 && kDataTypeOf<double> == tuttiFloat64);
static_assert(kDataTypeOf<int8_t> == tuttiInt8 && kDataTypeOf<uint8_t> == tuttiUint8);
static_assert(kDataTypeOf<int16_t> == tuttiInt16 && kDataTypeOf<uint16_t> == tuttiUint16);
static_assert(kDataTypeOf<short> == tuttiInt16 && kDataTypeOf<unsigned short> == tuttiUint16);
static_assert(kDataTypeOf<bool> == tuttiBool && sizeof(bool) == 1);
static_assert(kDataTypeOf<int32_t> == tuttiInt32 && kDataTypeOf<uint32_t> == tuttiUint32);
static_assert(kDataTypeOf<int64_t> == tuttiInt64 && kDataTypeOf<uint64_t> == tuttiUint64);
static_assert(kDataTypeOf<long long> == tuttiInt64 && kDataTypeOf<std::byte> == tuttiUint8);
static_assert(kDataTypeOf<Half> == tuttiFloat16);
static_assert(!std::is_copy_constructible_v<Communicator> && std::is_nothrow_move_constructible_v<Communicator>);
static_assert(!std::is_copy_constructible_v<Stream> && std::is_nothrow_move_constructible_v<Stream>);

// Runs `body` once a rank, each in a thread of its own; passes on the first exception.
void onRanks(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Communicator> comms = Communicator::joinAll(ranks);
  std::vector<std::exception_ptr> failures(comms.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < comms.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        body(comms[i]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

tuttiResult_t codeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const tutti::Exception& error) {
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  return tuttiSuccess;
}

TEST(CppFace, ReducesAndBroadcastsSpans) {
  onRanks(3, [](Communicator& comm) {
    const std::vector<int32_t> in{comm.rank(), 10 * comm.rank(), 1};
    std::vector<int32_t> out(in.size());
    comm.allReduce(std::span<const int32_t>(in), std::span<int32_t>(out));
    EXPECT_EQ(out, (std::vector<int32_t>{3, 30, 3}));
    comm.allReduce<int32_t>(in, out, tuttiMax);
    EXPECT_EQ(out, (std::vector<int32_t>{2, 20, 1}));
    std::vector<double> value{comm.rank() == 1 ? 2.5 : 0};
    comm.broadcast<double>(value, 1);
    EXPECT_EQ(value[0], 2.5);
  });
}

TEST(CppFace, ReducesTruthsAndBits) {
  onRanks(3, [](Communicator& comm) {
    bool truths[] = {comm.rank() == 1, true, comm.rank() != 1};
    comm.allReduce(std::span<bool>(truths), tuttiBitXor);
    EXPECT_TRUE(truths[0] && truths[1] && !truths[2]);
    std::vector<short> bits{static_cast<short>(-1 << comm.rank())};
    comm.allReduce<short>(bits, tuttiBitAnd);
    EXPECT_EQ(bits[0], -4);
    std::vector<unsigned short> sums{40'000};
    comm.allReduce<unsigned short>(sums);
    EXPECT_EQ(sums[0], 120'000 % 65'536);
  });
}

TEST(CppFace, MovesPartsOfRanks) {
  onRanks(2, [](Communicator& comm) {
    const auto mine = static_cast<uint64_t>(comm.rank());
    std::vector<uint64_t> all(2), one(1);
    comm.allGather<uint64_t>(std::array{mine + 5}, all);
    EXPECT_EQ(all, (std::vector<uint64_t>{5, 6}));
    comm.reduceScatter<uint64_t>(all, one);
    EXPECT_EQ(one[0], 2 * (5 + mine));
    comm.allToAll<uint64_t>(std::array{10 * mine, 10 * mine + 1}, all);
    EXPECT_EQ(all, (std::vector<uint64_t>{mine, 10 + mine}));
  });
}

TEST(CppFace, MovesPartsOfAnySize) {
  onRanks(2, [](Communicator& comm) {
    const auto mine = static_cast<size_t>(comm.rank());
    const std::array<size_t, 2> counts{1, 2}, places{0, 1};
    std::vector<int> own(counts[mine], 5 + comm.rank()), all(3);
    comm.allGatherV<int>(own, all, counts, places);
    EXPECT_EQ(all, (std::vector<int>{5, 6, 6}));
    comm.reduceScatterV<int>(all, own, counts);
    EXPECT_EQ(own, std::vector<int>(counts[mine], 2 * (5 + comm.rank())));
    const std::array<size_t, 2> ones{1, 1};
    std::vector<int> swapped(2);
    comm.allToAllV<int>(std::array{10 * comm.rank(), 10 * comm.rank() + 1}, ones, places, swapped, ones, places);
    EXPECT_EQ(swapped, (std::vector<int>{comm.rank(), 10 + comm.rank()}));
    comm.allToAll(std::span<int>(swapped));
    EXPECT_EQ(swapped, (std::vector<int>{10 * comm.rank(), 10 * comm.rank() + 1}));
  });
}

TEST(CppFace, GathersAndScattersPartsOfAnySize) {
  onRanks(3, [](Communicator& comm) {
    const auto mine = static_cast<size_t>(comm.rank());
    const bool isRoot = comm.rank() == 1;
    const std::vector<size_t> counts{1, 0, 2}, places{2, 0, 0}, none;
    std::vector<int> own(counts[mine], 5 + comm.rank()), all(isRoot ? 3 : 0);
    comm.gatherV<int>(own, all, isRoot ? counts : none, isRoot ? places : none, 1);
    EXPECT_EQ(all, isRoot ? (std::vector<int>{7, 7, 5}) : std::vector<int>());
    for (int& value : all) ++value;
    comm.scatterV<int>(all, isRoot ? counts : none, isRoot ? places : none, own, 1);
    EXPECT_EQ(own, std::vector<int>(counts[mine], 6 + comm.rank()));
  });
}

TEST(CppFace, OwnsMemoryAndOperators) {
  onRanks(2, [](Communicator& comm) {
    tutti::Memory memory = tutti::Memory(4 * sizeof(float));
    const std::span<float> values = memory.as<float>();
    EXPECT_EQ(values.size(), 4U);
    const auto registration = comm.registerBuffer(memory.data(), memory.size());
    std::ranges::fill(values, 1.0F);
    tuttiRedOp_t gone{};
    {
      const auto scaled = comm.preMulSum(comm.rank() == 0 ? 2.0F : 3.0F);
      gone = scaled;
      comm.allReduce(values, scaled);
    }
    EXPECT_EQ(values[3], 5.0F);
    EXPECT_EQ(codeOf([&] { comm.allReduce(values, gone); }), tuttiInvalidArgument);
  });
}

TEST(CppFace, NamedTypesAndUserTypesAgree) {
  onRanks(2, [](Communicator& comm) {
    const Half oneHalf{0x3c00};  // 1.0
    Half sum{}, named{};
    comm.allReduce(std::span<const Half>(&oneHalf, 1), std::span<Half>(&sum, 1));
    comm.allReduce(&oneHalf, &named, 1, tuttiFloat16, tuttiSum);
    EXPECT_EQ(sum.bits, 0x4000);
    EXPECT_EQ(named.bits, 0x4000);
  });
}

TEST(CppFace, QueuesOnAStreamAndGroupsMessages) {
  onRanks(2, [](Communicator& comm) {
    Stream stream;
    std::vector<float> data(1000, 1.0F);
    comm.allReduce(std::span<float>(data), tuttiSum, stream);
    stream.synchronize();
    EXPECT_TRUE(stream.idle());
    EXPECT_EQ(data, std::vector<float>(1000, 2.0F));

    const int peer = 1 - comm.rank();
    const std::array<int, 1> sent{comm.rank() + 7};
    std::array<int, 1> got{};
    tutti::Group group;
    comm.send<int>(sent, peer);
    comm.receive<int>(got, peer);
    group.end();
    EXPECT_EQ(got[0], peer + 7);
  });
}

TEST(CppFace, RefusesSpansThatDoNotFit) {
  onRanks(1, [](Communicator& comm) {
    std::vector<float> two(2), three(3);
    EXPECT_EQ(codeOf([&] { comm.allReduce<float>(two, three); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.allGather<float>(two, three); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.reduce<float>(two, three, tuttiSum, 0); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.allReduce<float>(two, std::span(three).first(2)); }), tuttiSuccess);
    const std::array<size_t, 1> count{2}, start{0}, beyond{SIZE_MAX};
    EXPECT_EQ(codeOf([&] { comm.allGatherV<float>(two, three, count, beyond); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.allGatherV<float>(three, three, count, start); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.reduceScatterV<float>(three, two, count); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.allToAllV<float>(two, count, start, three, beyond, start); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.gatherV<float>(two, three, count, beyond, 0); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.gatherV<float>(three, three, count, start, 0); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm.scatterV<float>(two, beyond, start, three, 0); }), tuttiInvalidArgument);
  });
}

// Every call whose spans are held against the number of ranks, or the own rank.
std::vector<std::function<void(Communicator&)>> callsThatCountRanks() {
  static std::array<float, 4> in{}, out{};
  static const std::vector<size_t> none;
  return {
      [](Communicator& comm) { comm.reduce<float>(in, out, tuttiSum, 0); },
      [](Communicator& comm) { comm.allGather<float>(in, out); },
      [](Communicator& comm) { comm.reduceScatter<float>(in, out); },
      [](Communicator& comm) { comm.gather<float>(in, out, 0); },
      [](Communicator& comm) { comm.scatter<float>(in, out, 0); },
      [](Communicator& comm) { comm.allToAll<float>(in, out); },
      [](Communicator& comm) { comm.allToAll<float>(in); },
      [](Communicator& comm) { comm.allGatherV<float>(in, out, none, none); },
      [](Communicator& comm) { comm.reduceScatterV<float>({}, out, none); },
      [](Communicator& comm) { comm.allToAllV<float>(in, none, none, out, none, none); },
      [](Communicator& comm) { comm.gatherV<float>(in, out, none, none, 0); },
      [](Communicator& comm) { comm.scatterV<float>(in, none, none, out, 0); },
  };
}

TEST(CppFace, WithoutAHandleItsCallsThrow) {
  Communicator gone = Communicator::joinAll(1)[0].split(TUTTI_SPLIT_NOCOLOR, 0);
  Communicator moved = std::move(Communicator::joinAll(1)[0]);
  const Communicator taken = std::move(moved);
  Communicator aborted = std::move(Communicator::joinAll(1)[0]);
  aborted.abort();
  for (Communicator* comm : {&gone, &moved, &aborted}) {
    EXPECT_EQ(comm->rank(), -1);
    EXPECT_EQ(comm->size(), 0);
    for (const auto& call : callsThatCountRanks()) EXPECT_EQ(codeOf([&] { call(*comm); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { comm->barrier(); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { (void)comm->asyncError(); }), tuttiInvalidArgument);
  }
}

TEST(CppFace, WhileItJoinsItsCallsThrow) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = 1;
  Communicator joining = Communicator::join(2, tutti::UniqueId::create(), 0, config);
  for (const auto& call : callsThatCountRanks()) EXPECT_EQ(codeOf([&] { call(joining); }), tuttiInvalidUsage);
  EXPECT_EQ(codeOf([&] { joining.destroy(); }), tuttiInvalidUsage);
  EXPECT_EQ(joining.asyncError(), tuttiInProgress) << "it has stayed";
}

TEST(CppFace, TakesOverWhatCouldNotJoin) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = 1;
  config.joinTimeoutMs = 1;
  tuttiComm_t handle = nullptr;
  const tutti::UniqueId id = tutti::UniqueId::create();
  EXPECT_EQ(tuttiCommInitRankConfig(&handle, 2, id.native(), 0, &config), tuttiInProgress);
  tuttiResult_t now = tuttiInProgress;
  while (now == tuttiInProgress) EXPECT_EQ(tuttiCommGetAsyncError(handle, &now), tuttiSuccess);
  const std::string why = tuttiGetLastError(handle);
  Communicator failed(handle);
  EXPECT_EQ(failed.asyncError(), tuttiTimeout);
  EXPECT_EQ(tuttiGetLastError(handle), why);
  EXPECT_EQ(failed.rank(), -1);
}

TEST(CppFace, AFailedCallThrowsItsCodeAndText) {
  onRanks(1, [](Communicator& comm) {
    std::vector<float> data(2);
    EXPECT_EQ(codeOf([&] { comm.broadcast<float>(data, 5); }), tuttiInvalidArgument);
  });
  EXPECT_EQ(codeOf([] { Communicator::joinAll(0); }), tuttiInvalidArgument);
}

TEST(CppFace, JoinsInTheBackground) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = 1;
  const tutti::UniqueId id = tutti::UniqueId::create();
  std::vector<Communicator> all;
  all.push_back(Communicator::join(2, id, 0, config));
  EXPECT_EQ(all[0].asyncError(), tuttiInProgress);
  EXPECT_EQ(all[0].rank(), -1);
  EXPECT_EQ(all[0].size(), 0);
  all.push_back(Communicator::join(2, id, 1, config));
  for (Communicator& one : all)
    while (one.asyncError() == tuttiInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(all[static_cast<size_t>(r)].asyncError(), tuttiSuccess);
    EXPECT_EQ(all[static_cast<size_t>(r)].rank(), r);
    EXPECT_EQ(all[static_cast<size_t>(r)].size(), 2);
  }
}

TEST(CppFace, OneThreadMakesAllRanksInAGroup) {
  const tutti::UniqueId id = tutti::UniqueId::create();
  std::vector<Communicator> all, children;
  tutti::Group joining;
  for (int r = 0; r < 2; ++r) all.push_back(Communicator::join(2, id, r));
  EXPECT_EQ(all[1].rank(), -1);
  joining.end();
  EXPECT_EQ(all[1].rank(), 1);
  tutti::Group splitting;
  for (Communicator& one : all) children.push_back(one.split(0, -one.rank()));
  splitting.end();
  EXPECT_EQ(children[0].rank(), 1);
  EXPECT_EQ(children[0].size(), 2);
}

TEST(CppFace, WhatIsStillMadeCanGo) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = 1;
  { const Communicator joining = Communicator::join(2, tutti::UniqueId::create(), 0, config); }
  std::vector<Communicator> all = Communicator::joinAll(2);
  {
    const Communicator child = all[0].split(0, 0, &config);
    EXPECT_EQ(child.asyncError(), tuttiInProgress);
  }
  EXPECT_EQ(codeOf([&] { all[1].split(0, 0); }), tuttiRemoteError) << "it has been aborted";
}

TEST(CppFace, OwnersMoveAndAnIdTravelsAsBytes) {
  const tutti::UniqueId id = tutti::UniqueId::create();
  const tutti::UniqueId copy = tutti::UniqueId::fromBytes(id.bytes());
  EXPECT_TRUE(std::equal(copy.bytes().begin(), copy.bytes().end(), id.bytes().begin()));
  Communicator first = Communicator::join(1, copy, 0);
  Communicator second = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_TRUE(second);
  EXPECT_EQ(second.size(), 1);
  second = second.split(0, 0);
  EXPECT_EQ(second.rank(), 0);
  second.destroy();
  EXPECT_FALSE(second);
  EXPECT_EQ(tutti::version(), TUTTI_VERSION_CODE);
}

TEST(CppFace, WhatWasMovedFromIsEmpty) {
  tutti::Memory first(64), second(32);
  tutti::Memory third = std::move(first);
  EXPECT_EQ(first.size(), 0U);
  EXPECT_TRUE(first.as<char>().empty());
  second = std::move(third);
  EXPECT_EQ(second.size(), 64U);
  EXPECT_EQ(third.size(), 0U);
  onRanks(1, [](Communicator& comm) {
    tutti::Operator scaled = comm.preMulSum(2.0F);
    const tutti::Operator kept = std::move(scaled);
    std::vector<float> data(1, 3.0F);
    EXPECT_EQ(codeOf([&] { comm.allReduce<float>(data, scaled); }), tuttiInvalidArgument);
    comm.allReduce<float>(data, kept);
    EXPECT_EQ(data[0], 6.0F);
  });
}

TEST(CppFace, OneConfigurationServesSeveralCalls) {
  onRanks(1, [](Communicator& comm) {
    Stream on;
    tutti::Request request;
    const tutti::CallConfig config = tutti::CallConfig().into(request);
    comm.barrier(on, config);
    const tuttiRequest_t first = request.native();
    request.wait();
    comm.barrier(on, config);
    EXPECT_NE(request.native(), first);
    EXPECT_EQ(tuttiRequestTest(first), tuttiInvalidArgument) << "it was freed";
    request.wait();
    EXPECT_EQ(codeOf([&] { comm.allReduce(nullptr, nullptr, 1, tuttiInt8, tuttiSum, on, config); }),
              tuttiInvalidArgument);
    EXPECT_FALSE(request) << "a call that was refused gives none";
  });
}

TEST(CppFace, AConfigurationSetsEveryField) {
  tutti::Request request;
  const tutti::CallConfig config = tutti::CallConfig()
                                       .algorithm("ring")
                                       .channels(2)
                                       .tag(4)
                                       .reproducible()
                                       .timeout(std::chrono::seconds(7))
                                       .persistentInto(request);
  const tuttiCallConfig_t& c = *config.native();
  EXPECT_STREQ(c.algorithm, "ring");
  EXPECT_EQ(c.channels, 2);
  EXPECT_EQ(c.tag, 4U);
  EXPECT_EQ(c.reproducible, 1);
  EXPECT_EQ(c.timeoutMs, 7'000);
  EXPECT_EQ(tutti::CallConfig().timeout(std::chrono::hours(10'000)).native()->timeoutMs, 0x7fffffff);
  EXPECT_EQ(c.flags, TUTTI_CALL_PERSISTENT);
  EXPECT_NE(c.request, nullptr);
  EXPECT_EQ(tutti::CallConfig(config).reproducible(false).native()->reproducible, 0);
}

TEST(CppFace, CallsTakeAConfigurationAndGiveRequests) {
  onRanks(2, [](Communicator& comm) {
    std::array<int, 3> data{comm.rank() + 1, 0, 0}, sum{};
    Stream on;
    tutti::Request one, again;
    comm.allReduce<int>(data, sum, tuttiSum, on, tutti::CallConfig().algorithm("ring").channels(2).tag(4).into(one));
    one.wait();
    EXPECT_TRUE(one.done());
    EXPECT_EQ(sum[0], 3);
    sum = {};
    comm.allReduce<int>(data, sum, tuttiSum, Stream::none(), tutti::CallConfig().persistentInto(again));
    EXPECT_EQ(sum[0], 0);
    for (int round = 0; round < 3; ++round) {
      data[0] = round;
      again.start();
      EXPECT_EQ(sum[0], 2 * round);
    }
    comm.barrier(on, tutti::CallConfig().into(one));
    one.reset();
    EXPECT_EQ(codeOf([&] { comm.barrier(Stream::none(), tutti::CallConfig().channels(99)); }), tuttiInvalidArgument);
    EXPECT_EQ(codeOf([&] { one.wait(); }), tuttiInvalidArgument);
    on.synchronize();
  });
}

}  // namespace
