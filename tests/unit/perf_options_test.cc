// The programs' command lines.
#include "perf/options.h"

#include <gtest/gtest.h>

#include "perf/failure.h"
#include "perf/launch.h"

namespace tutti::perf {
namespace {

Options parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "all_reduce_perf");
  return *parseOptions(static_cast<int>(arguments.size()), arguments.data(), "all_reduce_perf");
}

TEST(PerfOptions, ReadsSizes) {
  EXPECT_EQ(parseSize("0"), 0u);
  EXPECT_EQ(parseSize("8"), 8u);
  EXPECT_EQ(parseSize("64k"), 65536u);
  EXPECT_EQ(parseSize("1.5M"), 1572864u);
  EXPECT_EQ(parseSize("2G"), 2147483648u);
  for (const char* wrong : {"", "K", "-1", "1X", "1KB", "1M2", "nan", "inf", "1e300"}) {
    EXPECT_THROW(parseSize(wrong), UsageError) << wrong;
  }
}

TEST(PerfOptions, HasNcclTestsDefaultsAndSpellings) {
  const Options defaults = parsed({});
  EXPECT_EQ(defaults.minBytes, 32u << 20);
  EXPECT_EQ(defaults.iterations, 20);
  EXPECT_EQ(defaults.types, std::vector<tuttiDataType_t>{tuttiFloat32});
  const Options options = parsed({"-b8",     "-e",  "1K", "--stepfactor=4",
                                  "--iters", "5",   "-d", "bfloat16",
                                  "-o",      "all", "-r", "-1",
                                  "-a",      "3",   "-I", "1",
                                  "-p",      "1",   "-t", "4",
                                  "-z",      "3"});
  EXPECT_EQ(options.minBytes, 8u);
  EXPECT_EQ(options.maxBytes, 1024u);
  EXPECT_EQ(options.stepFactor, 4u);
  EXPECT_EQ(options.iterations, 5);
  EXPECT_EQ(options.types, std::vector<tuttiDataType_t>{tuttiBfloat16});
  EXPECT_EQ(options.operators.size(), 6u);
  EXPECT_EQ(options.root, -1);
  EXPECT_EQ(options.average, Average::kMax);
  EXPECT_TRUE(options.percentiles && options.parallelInit);
  EXPECT_EQ(options.blocking, Blocking::kEachBarrierUntimed);
  EXPECT_EQ(parsed({"-d", "all", "-r", "all"}).types.size(), 12u);
}

TEST(PerfOptions, SwitchesNeedNoValue) {
  const Options options = parsed({"-M", "-S", "-C", "1", "-I", "-n", "5", "-p", "0"});
  EXPECT_TRUE(options.memoryReport && options.timestamps && options.cpuTime && options.percentiles);
  EXPECT_FALSE(options.parallelInit);
  EXPECT_EQ(options.iterations, 5);
}

TEST(PerfOptions, TakesEveryLetterOfNcclTests) {
  parsed({"-t", "1", "-g", "1", "-b", "8",  "-e", "8", "-i", "8",   "-f", "2",     "-n", "5", "-w", "1",
          "-m", "1", "-N", "1", "-p", "0",  "-c", "1", "-o", "sum", "-d", "float", "-r", "0", "-z", "0",
          "-y", "0", "-T", "9", "-G", "0",  "-C", "0", "-S", "0",   "-J", "x",     "-a", "1", "-R", "0",
          "-x", "0", "-D", "0", "-V", "16", "-M", "0", "-u", "0",   "-I", "1",     "-K", "1"});
}

TEST(PerfOptions, TakesTheLastOfAnOptionGivenTwice) {
  const Options options = parsed({"-n", "5", "-b", "8", "--iters", "7", "-b", "16", "-e", "64", "-p", "1", "-p", "0"});
  EXPECT_EQ(options.iterations, 7);
  EXPECT_EQ(options.minBytes, 16u);
  EXPECT_FALSE(options.parallelInit);
}

TEST(PerfOptions, WalksTheSizes) {
  Options options = parsed({"-b", "1", "-e", "64", "-f", "4"});
  std::vector<size_t> sizes;
  for (std::optional<size_t> size = options.minBytes; size; size = options.nextSize(*size)) sizes.push_back(*size);
  EXPECT_EQ(sizes, (std::vector<size_t>{1, 4, 16, 64}));
  options = parsed({"-b", "0", "-e", "5", "-i", "2"});
  EXPECT_EQ(options.nextSize(0), 2u);
  EXPECT_EQ(options.nextSize(4), std::nullopt);
  options.stepFactor = 2;
  EXPECT_EQ(options.nextSize(0), 1u);
}

TEST(PerfOptions, RefusesWhatMakesNoSense) {
  const std::vector<std::vector<const char*>> wrong = {{"--bogus"},
                                                       {"extra"},
                                                       {"-b", "2K", "-e", "1K"},
                                                       {"-n", "0"},
                                                       {"-G", "1"},
                                                       {"-G", "1", "--device", "cuda", "-y", "1"},
                                                       {"-G", "1", "--device", "cuda", "-I", "1"},
                                                       {"--device", "tpu"},
                                                       {"-o", "xor"},
                                                       {"-d", "float128"},
                                                       {"-r", "-2"},
                                                       {"-z", "4"},
                                                       {"-a", "4"},
                                                       {"-x", "1"},
                                                       {"-D", "2"},
                                                       {"-m", "0"},
                                                       {"-t", "0"},
                                                       {"-K", "3"},
                                                       {"--ranks", "0"},
                                                       {"-c", "0", "--plant-error"},
                                                       {"-b", "1", "-e", "2", "-i", "0"}};
  for (const auto& arguments : wrong) EXPECT_THROW(parsed(arguments), UsageError) << arguments.front();
}

TEST(PerfLaunch, SaysHowAProcessEnded) {
  EXPECT_EQ(describeEnd(3 << 8), "exit status 3");
  EXPECT_EQ(describeEnd(9), "killed by signal 9 (Killed)");
}

}  // namespace
}  // namespace tutti::perf
