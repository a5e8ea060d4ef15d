// Memory of tuttiMemAlloc, which peers of the host read where it lies, through the C API: that it is read so, and what
// may happen to it between calls.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

constexpr size_t kMappedCount = 100'003;  // float, of each rank

uint64_t directSlots(tuttiComm_t comm) {
  tuttiCommStats_t stats{};
  stats.size = sizeof stats;
  CHECK_TUTTI(tuttiCommGetStats(comm, &stats));
  return stats.directSlots;
}

class Shared {
 public:
  explicit Shared(size_t count) {
    void* memory = nullptr;
    CHECK_TUTTI(tuttiMemAlloc(&memory, count * sizeof(float)));
    data_ = static_cast<float*>(memory);
  }
  Shared(Shared&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  ~Shared() { tuttiMemFree(data_); }
  float* data() { return data_; }

 private:
  float* data_ = nullptr;
};

void fill(float* data, size_t count, int rank, int call) {
  for (size_t i = 0; i < count; ++i)
    data[i] = static_cast<float>((i + static_cast<size_t>(rank * 31 + call * 7)) % 1000);
}

void expectSum(const float* data, int ranks, int call, size_t count = kMappedCount) {
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank)
      sum += static_cast<float>((i + static_cast<size_t>(rank * 31 + call * 7)) % 1000);
    ASSERT_EQ(data[i], sum) << i << " of call " << call;
  }
}

void sum(tuttiComm_t comm, float* in, float* out, size_t count = kMappedCount) {
  CHECK_TUTTI(tuttiAllReduce(in, out, count, tuttiFloat32, tuttiSum, comm, nullptr));
}

class MappedMemory : public testing::TestWithParam<const char*> {
 protected:
  static tuttiConfig_t config() {
    tuttiConfig_t config = testConfig();
    config.transports = GetParam();
    return config;
  }
  static bool isWithin() { return GetParam() != std::string("tcp"); }
};
INSTANTIATE_TEST_SUITE_P(Over, MappedMemory, testing::Values("shm", "p2p", "tcp"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(MappedMemory, IsReadInPlaceByPeersOfTheHost) {
  withCommunicators(3, config(), [](tuttiComm_t comm, int rank) {
    std::vector<float> plain(kMappedCount), result(kMappedCount);
    fill(plain.data(), kMappedCount, rank, 0);
    sum(comm, plain.data(), result.data());
    expectSum(result.data(), 3, 0);
    EXPECT_EQ(directSlots(comm), 0u) << "of ordinary memory";
    Shared in(kMappedCount), out(kMappedCount);
    fill(in.data(), kMappedCount, rank, 1);
    sum(comm, in.data(), out.data());
    expectSum(out.data(), 3, 1);
    EXPECT_EQ(directSlots(comm) != 0, isWithin());
    fill(in.data(), kMappedCount, rank, 2);
    sum(comm, in.data(), in.data());
    expectSum(in.data(), 3, 2);
  });
}

TEST_P(MappedMemory, EachRankMayHaveOther) {
  withCommunicators(3, config(), [](tuttiComm_t comm, int rank) {
    Shared shared(kMappedCount), other(kMappedCount);
    std::vector<float> plain(kMappedCount);
    for (int call = 0; call < 9; ++call) {
      float* const in = (call + rank) % 3 == 0 ? plain.data() : shared.data();
      float* const out = (call + rank) % 4 == 0 ? in : call % 2 == 0 ? other.data() : plain.data();
      fill(in, kMappedCount, rank, call);
      sum(comm, in, out);
      expectSum(out, 3, call);
    }
  });
}

// Each rank by its own times, and the tries of one after those of the other. The mapped way is always tried again.
TEST_P(MappedMemory, OfTwoRanksInPlaceIsTriedAgainstSlots) {
  for (const char* algorithm : {"twoshot", "twopass", "ring", "halving"}) {
    tuttiConfig_t with = config();
    with.algorithm = algorithm;
    withCommunicators(2, with, [&](tuttiComm_t comm, int rank) {
      constexpr size_t kCount = 200'000;
      Shared shared(kCount);
      std::vector<float> plain(kCount);
      int lent = 0, filled = 0;
      for (int call = 0; call < 110; ++call) {
        float* const data = rank == 1 && call < 4 ? plain.data() : shared.data();
        fill(data, kCount, rank, call);
        const uint64_t before = directSlots(comm);
        sum(comm, data, data, kCount);
        if (call % 10 == 0 || call > 30) expectSum(data, 2, call, kCount);
        if (data == shared.data()) ++(directSlots(comm) != before ? lent : filled);
      }
      if (isWithin() && algorithm == std::string("twoshot")) {
        EXPECT_GE(lent, 30);
        EXPECT_GE(filled, 3) << "of 64 calls three and more go by slots";
      }
    });
  }
}

// Calls that repeat go a short way, in which everything lies in slots: until a peer lends what it has.
TEST_P(MappedMemory, MayComeAndGoWhereCallsRepeat) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int rank) {
    for (const size_t count : {1500u, 2048u, 3000u, 4095u, 4096u, 5000u}) {
      Shared shared(count), other(count);
      std::vector<float> plain(count), result(count);
      for (int call = 0; call < 120; ++call) {
        const bool lends = rank == 0 ? call / 7 % 2 == 1 : call / 11 % 3 == 1;
        float* const in = lends ? shared.data() : plain.data();
        float* const out = call / 5 % 3 == 0 ? in : call / 13 % 2 == 0 ? result.data() : other.data();
        fill(in, count, rank, call);
        sum(comm, in, out, count);
        expectSum(out, 2, call, count);
      }
    }
    EXPECT_EQ(directSlots(comm) != 0, isWithin());
  });
}

// What is allocated anew lies where something else lay, which the peers have mapped.
TEST_P(MappedMemory, MayBeFreedAndAllocatedBetweenCalls) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int rank) {
    for (int call = 0; call < 8; ++call) {
      Shared in(kMappedCount + static_cast<size_t>(call % 3) * 5000), out(kMappedCount);
      fill(in.data(), kMappedCount, rank, call);
      sum(comm, in.data(), out.data());
      expectSum(out.data(), 2, call);
    }
  });
}

TEST_P(MappedMemory, ServesEveryCommunicator) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int rank) {
    tuttiComm_t second = nullptr;
    CHECK_TUTTI(tuttiCommSplit(comm, 0, 1 - rank, &second, nullptr));
    Shared in(kMappedCount), out(kMappedCount);
    for (int call = 0; call < 4; ++call)
      for (const tuttiComm_t each : {comm, second}) {
        const int own = each == comm ? rank : 1 - rank;
        fill(in.data(), kMappedCount, own, call);
        sum(each, in.data(), out.data());
        expectSum(out.data(), 2, call);
        EXPECT_EQ(directSlots(each) != 0, isWithin());
      }
    CHECK_TUTTI(tuttiCommDestroy(second));
  });
}

TEST_P(MappedMemory, ServesStreamsAndGroups) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int rank) {
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    Shared in(2 * kMappedCount), out(2 * kMappedCount);
    for (int half = 0; half < 2; ++half)
      fill(in.data() + half * static_cast<ptrdiff_t>(kMappedCount), kMappedCount, rank, half);
    CHECK_TUTTI(tuttiGroupStart());
    for (size_t half = 0; half < 2; ++half)
      CHECK_TUTTI(tuttiAllReduce(in.data() + half * kMappedCount, out.data() + half * kMappedCount, kMappedCount,
                                 tuttiFloat32, tuttiSum, comm, stream));
    CHECK_TUTTI(tuttiGroupEnd());
    CHECK_TUTTI(tuttiStreamSynchronize(stream));
    for (int half = 0; half < 2; ++half) expectSum(out.data() + half * static_cast<ptrdiff_t>(kMappedCount), 2, half);
    CHECK_TUTTI(tuttiStreamDestroy(stream));
  });
}

// A rank whose call has failed may free its buffer at once, though its peer may be reading it: that is an error there,
// and no fault.
TEST_P(MappedMemory, MayBeFreedAfterACallThatFailed) {
  for (int turn = 0; turn < 10; ++turn) {
    std::barrier both(2);
    withCommunicators(2, config(), [&](tuttiComm_t comm, int rank) {
      const size_t count = kMappedCount * 10;
      std::vector<Shared> buffers;
      for (int i = 0; i < 2; ++i) buffers.emplace_back(count);
      std::memset(buffers[0].data(), 0, count * sizeof(float));
      CHECK_TUTTI(tuttiAllReduce(buffers[0].data(), buffers[1].data(), count, tuttiFloat32, tuttiSum, comm, nullptr));
      both.arrive_and_wait();
      std::thread revoker;
      if (rank == 0)
        revoker = std::thread([&, turn] {
          std::this_thread::sleep_for(std::chrono::microseconds(200 * turn));
          tuttiCommRevoke(comm, 0);
        });
      tuttiResult_t result = tuttiSuccess;
      while (result == tuttiSuccess)
        result = tuttiAllReduce(buffers[0].data(), buffers[1].data(), count, tuttiFloat32, tuttiSum, comm, nullptr);
      EXPECT_EQ(result, tuttiRemoteError);
      buffers.clear();
      if (revoker.joinable()) revoker.join();
    });
  }
}

}  // namespace
