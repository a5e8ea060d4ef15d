// Collectives on the emulated GPU through the C API: every collective, algorithm and protocol.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <sstream>

#include "device/protocol.h"
#include "emulation/gpu_ranks.h"
#include "schedule/algorithm.h"
#include "schedule/schedule.h"

namespace tutti::test {
namespace {

using faults::Operation;

struct Variant {
  std::string algorithm, protocol;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (int a = 0; a < schedule::kBuiltInAlgorithms; ++a)
    for (const ProtocolRow& protocol : kProtocolRows)
      all.push_back({std::string(nameOf(static_cast<schedule::Algorithm>(a))), std::string(protocol.name)});
  return all;
}

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.algorithm << " " << variant.protocol; }

std::string nameOfVariant(const ::testing::TestParamInfo<Variant>& info) {
  return info.param.algorithm + "_" + info.param.protocol;
}

class DeviceCollective : public ::testing::TestWithParam<Variant> {
 protected:
  static GpuRanks ranks(int size, const char* channels = "2") {
    return GpuRanks(size, {{"TUTTI_ALGO", GetParam().algorithm},
                           {"TUTTI_PROTOCOL", GetParam().protocol},
                           {"TUTTI_CHANNELS", channels},
                           {"TUTTI_GROUP_SIZE", "2"}});
  }
};

// Counts around what a thread, a warp, a line and a slot carry, and odd ones.
const std::vector<size_t> kCounts = kThreadSanitized ? std::vector<size_t>{1033}
                                    : kSanitized     ? std::vector<size_t>{33, 4099}
                                                     : std::vector<size_t>{0, 1, 7, 33, 1000, 4099};
const std::vector<int> kSizes = kSanitized ? std::vector<int>{3} : std::vector<int>{2, 3, 5, 8};

TEST_P(DeviceCollective, GivesRightResults) {
  for (const int size : kSizes) {
    const GpuRanks gpu = ranks(size);
    for (const Operation& operation : everyKind(size, kCounts)) ASSERT_EQ(gpu.run(operation), "") << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCollective, ::testing::ValuesIn(variants()), nameOfVariant);

}  // namespace
}  // namespace tutti::test
