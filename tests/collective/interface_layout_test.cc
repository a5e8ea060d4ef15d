// The structs that programs and the library hand each other, byte by byte: a program that was compiled with any header
// from 0.1 on runs with this library, and this header's programs with libraries to come. Whoever appends a field
// appends a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

static_assert(sizeof(void*) == 8 && sizeof(int) == 4 && sizeof(size_t) == 8, "the tables are of 64-bit machines");

struct Field {
  std::string_view name;
  size_t offset, size;
  constexpr size_t end() const { return offset + size; }
};

// ---- What was agreed, for ever. 0.1 ends with device and directSlots, and has padding where 0.2 says reserved. ----

constexpr Field kConfigTable[] = {{"size", 0, 8},
                                  {"version", 8, 4},
                                  {"joinTimeoutMs", 12, 4},
                                  {"connectTimeoutMs", 16, 4},
                                  {"operationTimeoutMs", 20, 4},
                                  {"channels", 24, 4},
                                  {"reserved0", 28, 4},
                                  {"transports", 32, 8},
                                  {"algorithm", 40, 8},
                                  {"name", 48, 8},
                                  {"heartbeatMs", 56, 4},
                                  {"encrypt", 60, 4},
                                  {"nonBlocking", 64, 4},
                                  {"reserved1", 68, 4},
                                  {"device", 72, 8},
                                  {"reproducible", 80, 4},
                                  {"reserved2", 84, 4},
                                  {"channelRules", 88, 8},
                                  {"protocol", 96, 8}};
constexpr Field kStatsTable[] = {{"size", 0, 8},         {"memoryBytes", 8, 8},     {"connectedPeers", 16, 8},
                                 {"operations", 24, 8},  {"lastAlgorithm", 32, 16}, {"lastTransports", 48, 32},
                                 {"directSlots", 80, 8}, {"bytes", 88, 8},          {"nanoseconds", 96, 8}};
constexpr Field kCallConfigTable[] = {
    {"size", 0, 8},   {"version", 8, 4}, {"channels", 12, 4}, {"algorithm", 16, 8}, {"reproducible", 24, 4},
    {"flags", 28, 4}, {"tag", 32, 8},    {"request", 40, 8},  {"timeoutMs", 48, 4}, {"reserved0", 52, 4}};
constexpr Field kUniqueIdTable[] = {{"internal", 0, 128}};

// ---- What the header says -----------------------------------------------------------------------------------------

#define TUTTI_FIELD(type, field) \
  Field { #field, offsetof(type, field), sizeof(type::field) }
constexpr Field kConfigHeader[] = {TUTTI_FIELD(tuttiConfig_t, size),
                                   TUTTI_FIELD(tuttiConfig_t, version),
                                   TUTTI_FIELD(tuttiConfig_t, joinTimeoutMs),
                                   TUTTI_FIELD(tuttiConfig_t, connectTimeoutMs),
                                   TUTTI_FIELD(tuttiConfig_t, operationTimeoutMs),
                                   TUTTI_FIELD(tuttiConfig_t, channels),
                                   TUTTI_FIELD(tuttiConfig_t, reserved0),
                                   TUTTI_FIELD(tuttiConfig_t, transports),
                                   TUTTI_FIELD(tuttiConfig_t, algorithm),
                                   TUTTI_FIELD(tuttiConfig_t, name),
                                   TUTTI_FIELD(tuttiConfig_t, heartbeatMs),
                                   TUTTI_FIELD(tuttiConfig_t, encrypt),
                                   TUTTI_FIELD(tuttiConfig_t, nonBlocking),
                                   TUTTI_FIELD(tuttiConfig_t, reserved1),
                                   TUTTI_FIELD(tuttiConfig_t, device),
                                   TUTTI_FIELD(tuttiConfig_t, reproducible),
                                   TUTTI_FIELD(tuttiConfig_t, reserved2),
                                   TUTTI_FIELD(tuttiConfig_t, channelRules),
                                   TUTTI_FIELD(tuttiConfig_t, protocol)};
constexpr Field kStatsHeader[] = {
    TUTTI_FIELD(tuttiCommStats_t, size),           TUTTI_FIELD(tuttiCommStats_t, memoryBytes),
    TUTTI_FIELD(tuttiCommStats_t, connectedPeers), TUTTI_FIELD(tuttiCommStats_t, operations),
    TUTTI_FIELD(tuttiCommStats_t, lastAlgorithm),  TUTTI_FIELD(tuttiCommStats_t, lastTransports),
    TUTTI_FIELD(tuttiCommStats_t, directSlots),    TUTTI_FIELD(tuttiCommStats_t, bytes),
    TUTTI_FIELD(tuttiCommStats_t, nanoseconds)};
constexpr Field kCallConfigHeader[] = {
    TUTTI_FIELD(tuttiCallConfig_t, size),         TUTTI_FIELD(tuttiCallConfig_t, version),
    TUTTI_FIELD(tuttiCallConfig_t, channels),     TUTTI_FIELD(tuttiCallConfig_t, algorithm),
    TUTTI_FIELD(tuttiCallConfig_t, reproducible), TUTTI_FIELD(tuttiCallConfig_t, flags),
    TUTTI_FIELD(tuttiCallConfig_t, tag),          TUTTI_FIELD(tuttiCallConfig_t, request),
    TUTTI_FIELD(tuttiCallConfig_t, timeoutMs),    TUTTI_FIELD(tuttiCallConfig_t, reserved0)};
constexpr Field kUniqueIdHeader[] = {TUTTI_FIELD(tuttiUniqueId, internal)};
#undef TUTTI_FIELD

// The same fields at the same places, one after the other, without a byte between or behind them that has no name.
template <size_t kRows, size_t kFields>
constexpr bool agrees(const Field (&table)[kRows], const Field (&header)[kFields], size_t size) {
  size_t at = 0;
  for (size_t i = 0; kRows == kFields && i < kRows; ++i) {
    const Field &row = table[i], &field = header[i];
    if (row.name != field.name || row.offset != field.offset || row.size != field.size || row.offset != at)
      return false;
    at = row.end();
  }
  return at == size;
}
static_assert(agrees(kConfigTable, kConfigHeader, sizeof(tuttiConfig_t)));
static_assert(agrees(kStatsTable, kStatsHeader, sizeof(tuttiCommStats_t)));
static_assert(agrees(kCallConfigTable, kCallConfigHeader, sizeof(tuttiCallConfig_t)));
static_assert(agrees(kUniqueIdTable, kUniqueIdHeader, sizeof(tuttiUniqueId)));
static_assert(alignof(tuttiConfig_t) == 8 && alignof(tuttiCommStats_t) == 8 && alignof(tuttiUniqueId) == 1);

// ---- Calls with each of them --------------------------------------------------------------------------------------

// A program's struct, in memory that ends where the struct does: a sanitizer sees who reads on.
template <class Struct>
class Given {
 public:
  explicit Given(size_t size, unsigned char filler = 0) : size_(size), bytes_(new unsigned char[size]) {
    std::memset(bytes_.get(), filler, size);
    put("size", size);
  }
  Struct* get() const { return reinterpret_cast<Struct*>(bytes_.get()); }
  unsigned char* at(size_t offset) const { return bytes_.get() + offset; }
  // Unless the struct ends before.
  template <class Value>
  void put(std::string_view name, Value value) const {
    const Field& field = fieldOf(name);
    ASSERT_EQ(field.size, sizeof value);
    if (field.end() <= size_) std::memcpy(at(field.offset), &value, sizeof value);
  }

 private:
  static const Field& fieldOf(std::string_view name) {
    if constexpr (std::is_same_v<Struct, tuttiConfig_t>)
      return *std::ranges::find(kConfigTable, name, &Field::name);
    else if constexpr (std::is_same_v<Struct, tuttiCallConfig_t>)
      return *std::ranges::find(kCallConfigTable, name, &Field::name);
    else
      return *std::ranges::find(kStatsTable, name, &Field::name);
  }
  size_t size_;
  std::unique_ptr<unsigned char[]> bytes_;
};

using GivenConfig = Given<tuttiConfig_t>;
constexpr size_t kVersionEnd = 12, kNonBlockingEnd = 68;

GivenConfig configOf(size_t size, unsigned int version, int nonBlocking) {
  GivenConfig config(size);
  config.put("version", version);
  config.put("joinTimeoutMs", static_cast<int>(longWait().count()));
  config.put("name", "with a name");
  config.put("nonBlocking", nonBlocking);
  return config;
}

// How a communicator of one rank is made with it; what there is, is destroyed.
tuttiResult_t joinWith(const GivenConfig& config) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comm = nullptr;
  const tuttiResult_t result = tuttiCommInitRankConfig(&comm, 1, id, 0, config.get());
  if (comm == nullptr) return result;
  tuttiResult_t state = tuttiInProgress;
  while (state == tuttiInProgress) {
    CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(state, tuttiSuccess) << tuttiGetLastError(comm);
  CHECK_TUTTI(tuttiCommDestroy(comm));
  return result;
}

TEST(InterfaceLayout, EveryEarlierConfigurationIsTaken) {
  for (const unsigned int version : {100u, 200u, unsigned{TUTTI_VERSION_CODE}})
    for (const Field& last : kConfigTable) {
      if (last.end() < kVersionEnd) continue;
      for (const int nonBlocking : {0, 1}) {
        const bool asks = nonBlocking == 1 && last.end() >= kNonBlockingEnd;
        EXPECT_EQ(joinWith(configOf(last.end(), version, nonBlocking)), asks ? tuttiInProgress : tuttiSuccess)
            << version << ", up to " << last.name << ": " << tuttiGetLastError(nullptr);
      }
    }
  EXPECT_EQ(joinWith(GivenConfig(8)), tuttiInvalidArgument) << "without a version";
}

TEST(InterfaceLayout, PaddingOfOldProgramsIsNotLookedAt) {
  for (const char* name : {"reserved0", "reserved1", "reserved2"}) {
    const GivenConfig old = configOf(sizeof(tuttiConfig_t), 100, 0);
    old.put(name, 0x5a5a5a5a);
    EXPECT_EQ(joinWith(old), tuttiSuccess) << tuttiGetLastError(nullptr);
    old.put("version", 200u);
    EXPECT_EQ(joinWith(old), tuttiInvalidArgument);
    EXPECT_NE(
        std::string(tuttiGetLastError(nullptr)).find(std::string("config.") + name + " is 1515870810; it has to be 0:"),
        std::string::npos)
        << tuttiGetLastError(nullptr);
  }
}

TEST(InterfaceLayout, ALaterConfigurationIsTakenUnlessItSaysWhatIsNotKnown) {
  constexpr size_t kNow = sizeof(tuttiConfig_t);
  for (const size_t more : {size_t{1}, size_t{4}, size_t{8}, size_t{200}}) {
    const GivenConfig later = configOf(kNow + more, TUTTI_VERSION_CODE + 100, 1);
    EXPECT_EQ(joinWith(later), tuttiInProgress) << tuttiGetLastError(nullptr);
    *later.at(kNow + more - 1) = 1;
    EXPECT_EQ(joinWith(later), tuttiInvalidArgument);
    const std::string text = tuttiGetLastError(nullptr);
    const std::string words = "config.size is " + std::to_string(kNow + more) + ", and the byte at offset " +
                              std::to_string(kNow + more - 1) + " is not 0: ";
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_NE(text.find("too old to know"), std::string::npos) << text;
  }
  GivenConfig unfilled = configOf(kNow, TUTTI_VERSION_CODE, 0);
  unfilled.put("size", size_t{1} << 40);
  EXPECT_EQ(joinWith(unfilled), tuttiInvalidArgument) << "and is not read";
}

TEST(InterfaceLayout, EveryEarlierConfigurationOfACallIsTaken) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    for (const Field& last : kCallConfigTable) {
      if (last.end() < kVersionEnd) continue;
      const Given<tuttiCallConfig_t> config(last.end());
      config.put("version", 200u);
      EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, config.get()), tuttiSuccess)
          << "up to " << last.name << ": " << tuttiGetLastError(comm);
      config.put("timeoutMs", -1);  // what the struct has, is looked at
      const bool has = last.name == "timeoutMs" || last.name == "reserved0";
      EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, config.get()), has ? tuttiInvalidArgument : tuttiSuccess)
          << "up to " << last.name;
    }
    tuttiCallConfig_t reserved = TUTTI_CALL_CONFIG_INITIALIZER;
    reserved.reserved0 = 3;
    EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, &reserved), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("config.reserved0 is 3; it has to be 0:"), std::string::npos)
        << tuttiGetLastError(comm);
  });
}

TEST(InterfaceLayout, StatsOfEverySizeAreFilledAsFarAsTheyGo) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    tuttiCommStats_t full{};
    full.size = sizeof full;
    CHECK_TUTTI(tuttiCommGetStats(comm, &full));
    EXPECT_EQ(full.operations, 1u);
    std::vector<size_t> sizes = {sizeof full + 1, sizeof full + 8, sizeof full + 300};
    for (const Field& last : kStatsTable) sizes.push_back(last.end());
    for (const size_t size : sizes) {
      const Given<tuttiCommStats_t> given(size, 0xee);
      CHECK_TUTTI(tuttiCommGetStats(comm, given.get()));
      const size_t known = std::min(size, sizeof full);
      tuttiCommStats_t expected = full;
      expected.size = known;
      EXPECT_EQ(std::memcmp(given.get(), &expected, known), 0) << size;
      EXPECT_TRUE(std::all_of(given.at(known), given.at(size), [](auto byte) { return byte == 0; })) << size;
    }
    for (const size_t size : {size_t{0}, size_t{7}, size_t{1} << 40}) {
      full.size = size;
      EXPECT_EQ(tuttiCommGetStats(comm, &full), tuttiInvalidArgument) << size;
    }
  });
}

}  // namespace
