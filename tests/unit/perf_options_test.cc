// The programs' command lines.
#include "perf/options.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "perf/failure.h"
#include "perf/progress.h"
#include "perf/table.h"

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
  EXPECT_EQ(options.operators.size(), 9u);
  EXPECT_EQ(options.root, -1);
  EXPECT_EQ(options.average, Average::kMax);
  EXPECT_TRUE(options.percentiles && options.parallelInit);
  EXPECT_EQ(options.blocking, Blocking::kEachBarrierUntimed);
  EXPECT_EQ(parsed({"-d", "all", "-r", "all"}).types.size(), 15u);
}

TEST(PerfOptions, SwitchesNeedNoValue) {
  const Options options = parsed({"-M", "-S", "-C", "1", "-I", "-n", "5", "-p", "0"});
  EXPECT_TRUE(options.memoryReport && options.timestamps && options.cpuTime && options.percentiles);
  EXPECT_FALSE(options.parallelInit);
  EXPECT_EQ(options.iterations, 5);
}

// Every letter that nccl-tests has: what it sets, each to a value that is not its default.
TEST(PerfOptions, TakesEveryLetterOfNcclTests) {
  struct Letter {
    std::vector<const char*> arguments;
    std::function<bool(const Options&)> isSet;
  };
  const std::vector<Letter> letters = {
      {{"-t", "3"}, [](const Options& o) { return o.threads == 3; }},
      {{"-g", "3"}, [](const Options& o) { return o.communicatorsPerThread == 3; }},
      {{"-b", "8"}, [](const Options& o) { return o.minBytes == 8; }},
      {{"-e", "64M"}, [](const Options& o) { return o.maxBytes == 64 << 20; }},
      {{"-i", "8"}, [](const Options& o) { return o.stepBytes == 8; }},
      {{"-f", "2"}, [](const Options& o) { return o.stepFactor == 2; }},
      {{"-n", "5"}, [](const Options& o) { return o.iterations == 5; }},
      {{"-w", "7"}, [](const Options& o) { return o.warmups == 7; }},
      {{"-m", "4"}, [](const Options& o) { return o.aggregated == 4; }},
      {{"-N", "2"}, [](const Options& o) { return o.cycles == 2; }},
      {{"-p", "1"}, [](const Options& o) { return o.parallelInit; }},
      {{"-c", "0"}, [](const Options& o) { return o.checks == 0; }},
      {{"-o", "max"}, [](const Options& o) { return o.operators == std::vector{Operator::kMax}; }},
      {{"-d", "int8"}, [](const Options& o) { return o.types == std::vector{tuttiInt8}; }},
      {{"-r", "3"}, [](const Options& o) { return o.root == 3; }},
      {{"-z", "1"}, [](const Options& o) { return o.blocking == Blocking::kEachWithBarrier; }},
      {{"-y", "0"}, [](const Options& o) { return !o.nullStream; }},
      {{"-T", "9"}, [](const Options& o) { return o.timeoutSeconds == 9; }},
      {{"-G", "2", "--device", "cuda"}, [](const Options& o) { return o.graphLaunches == 2 && o.onGpus; }},
      {{"-C", "1"}, [](const Options& o) { return o.cpuTime; }},
      {{"-S", "1"}, [](const Options& o) { return o.timestamps; }},
      {{"-J", "x"}, [](const Options& o) { return o.jsonFile == "x"; }},
      {{"-a", "3"}, [](const Options& o) { return o.average == Average::kMax; }},
      {{"-R", "2"}, [](const Options& o) { return o.memoryKind == 2; }},
      {{"-M", "1"}, [](const Options& o) { return o.memoryReport; }},
      {{"-u", "5"}, [](const Options& o) { return o.unalign == 5; }},
      {{"-I", "1"}, [](const Options& o) { return o.percentiles; }},
      {{"-K", "1", "-I"}, [](const Options& o) { return o.skipped == 1 && o.percentiles; }}};
  const Options defaults = parsed({});
  std::vector<const char*> all;
  for (const Letter& letter : letters) {
    EXPECT_TRUE(letter.isSet(parsed(letter.arguments))) << letter.arguments.front();
    EXPECT_FALSE(letter.isSet(defaults)) << letter.arguments.front() << " is not tried with another value";
    if (letter.arguments.front() != std::string("-G"))  // which others contradict
      all.insert(all.end(), letter.arguments.begin(), letter.arguments.end());
  }
  const Options together = parsed(all);
  for (const Letter& letter : letters) {
    EXPECT_TRUE(letter.isSet(together) || letter.arguments.front() == std::string("-G"))
        << letter.arguments.front() << " together with the others";
  }
}

// Of these there is one value only: they are taken and mean nothing.
TEST(PerfOptions, TakesTheLettersThatMeanNothingHere) {
  parsed({"-x", "0", "-D", "0", "-V", "16"});
  EXPECT_THROW(parsed({"-x", "1"}), UsageError);
  EXPECT_THROW(parsed({"-D", "1"}), UsageError);
}

std::string refusalOf(const std::vector<const char*>& arguments) {
  try {
    parsed(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(PerfOptions, EveryNumberHasARange) {
  for (const char* letter : {"-f", "-u", "-n", "-w", "-m", "-N", "-c", "-t", "-g", "-T",      "-G",
                             "-x", "-D", "-V", "-K", "-a", "-R", "-y", "-z", "-r", "--ranks", "--progress"})
    for (const char* value : {"-2", "1x", "", "1.5", "4611686018427387904", "99999999999999999999"}) {
      const std::string text = refusalOf({letter, value});
      EXPECT_NE(text.find(std::string(letter)), std::string::npos) << letter << " " << value << ": " << text;
      const bool emptyText = *value == '\0' && letter == std::string("-r");  // which may be a word, too
      EXPECT_NE(text.find(emptyText ? "RANK is empty" : "expected a whole number from"), std::string::npos)
          << letter << " " << value << ": " << text;
    }
  EXPECT_NE(refusalOf({"-u", "-1"}).find("-u,--unalign -1: expected a whole number from 0 to 1048576"),
            std::string::npos);
}

TEST(PerfOptions, SwitchesAreZeroOrOne) {
  for (const char* letter : {"-p", "-C", "-S", "-M", "-I"})
    for (const char* value : {"2", "-1", "yes"}) {
      const std::string text = refusalOf({letter, value});
      EXPECT_NE(text.find(letter), std::string::npos) << letter << " " << value << ": " << text;
      if (*value != '-') {
        EXPECT_NE(text.find(std::string(value) + ": expected 0 or 1"), std::string::npos) << text;
      }
    }
}

TEST(PerfOptions, NamesWhatWasTypedWhereAValueIsMissing) {
  EXPECT_EQ(refusalOf({"--json"}), "--json: FILE is missing");
  EXPECT_EQ(refusalOf({"-b", "8", "-J", "--ranks", "2"}), "-J: FILE is missing");
  EXPECT_EQ(refusalOf({"--ranks"}), "--ranks: N is missing");
  EXPECT_EQ(refusalOf({"-n", "--minbytes"}), "-n: N is missing");
  EXPECT_EQ(refusalOf({"-r", "-1", "-d"}), "-d: NAME is missing");
}

TEST(PerfOptions, NamesTheOptionThatIsNearest) {
  EXPECT_EQ(refusalOf({"--rank", "2"}), "what is --rank 2? Did you mean --ranks?");
  EXPECT_EQ(refusalOf({"-t", "2", "--rnaks", "2", "x"}), "what is --rnaks 2 x? Did you mean --ranks?");
  EXPECT_EQ(refusalOf({"--rnaks", "2", "-t", "2"}), "what is --rnaks 2? Did you mean --ranks?");
  EXPECT_EQ(refusalOf({"--warmup=3"}), "what is --warmup=3? Did you mean --warmup_iters?");
  EXPECT_EQ(refusalOf({"--colour", "blue"}), "what is --colour blue? There is no such option");
  EXPECT_EQ(refusalOf({"x", "y"}), "what is x y? There is no such option");
}

TEST(PerfOptions, NoTextIsEmpty) {
  for (const char* name : {"-J", "--json", "--plot", "-d", "-o", "-b", "--transport", "--algo", "--device"}) {
    const std::string text = refusalOf({name, ""});
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_NE(text.find(" is empty"), std::string::npos) << name << ": " << text;
  }
}

TEST(PerfOptions, ListsEveryNameOfATypeThatItTakes) {
  const std::string text = refusalOf({"-d", "xyz"});
  for (const char* name : {"float", "all", "fp16 (half)", "bf16 (bfloat16)", "fp8 (f8e4m3)", "e5m2 (f8e5m2)"})
    EXPECT_NE(text.find(name), std::string::npos) << name << ": " << text;
}

TEST(PerfOptions, CountsRanksBeforeItStartsAny) {
  EXPECT_NE(refusalOf({"-t", "4096", "-g", "4096", "--ranks", "4096"}).find("68719476736 ranks"), std::string::npos);
  EXPECT_NE(refusalOf({"-t", "65", "-g", "64"}).find("4160 ranks"), std::string::npos);
  EXPECT_EQ(refusalOf({"-t", "64", "-g", "64"}), "");
}

TEST(PerfOptions, KnowsOtherFrameworksNamesOfTypes) {
  const std::vector<std::pair<const char*, tuttiDataType_t>> names = {
      {"fp16", tuttiFloat16}, {"bf16", tuttiBfloat16},  {"fp32", tuttiFloat32},    {"fp64", tuttiFloat64},
      {"half", tuttiFloat16}, {"fp8", tuttiFloat8e4m3}, {"e4m3", tuttiFloat8e4m3}, {"e5m2", tuttiFloat8e5m2}};
  for (const auto& [name, type] : names)
    EXPECT_EQ(parsed({"-d", name}).types, std::vector<tuttiDataType_t>{type}) << name;
}

TEST(PerfOptions, SizesEndBeforeTheyOverflow) {
  Options options = parsed({"-b", "1", "-e", "1048576G", "-f", "1048576"});
  EXPECT_EQ(options.nextSize(size_t{1} << 20), size_t{1} << 40);
  EXPECT_EQ(options.nextSize(size_t{1} << 40), std::nullopt);
}

TEST(PerfProgress, CountsLinesAndGuessesTheRest) {
  Options options;
  options.minBytes = 8;
  options.maxBytes = 32;
  options.stepFactor = 2;
  EXPECT_EQ(linesOf(options).size(), 3u);
  Estimate estimate;
  estimate.expect({100, 100, 200}, 2, 1);
  EXPECT_EQ(estimate.text(50), "line 1 of 6");
  estimate.count();
  estimate.count();
  EXPECT_EQ(estimate.text(1), "line 3 of 6") << "too early to guess";
  EXPECT_EQ(estimate.text(10), "line 3 of 6, about 30 s left");
  estimate.count();
  EXPECT_EQ(estimate.text(1000), "line 4 of 6, about 17 min left");
  estimate.expect({1}, 1, 0);
  EXPECT_EQ(estimate.text(100), "line 4") << "there is no end";
  EXPECT_EQ(roughly(36'000), "10 h");
}

TEST(PerfTable, SaysWhyTimeMayBeLessThanTheLeastIteration) {
  Options options;
  EXPECT_EQ(preamble("x", options, 1).find("i_min"), std::string::npos);
  options.percentiles = true;
  EXPECT_NE(
      preamble("x", options, 1).find("# time is the mean over ranks of each one's own mean (-a 1): it may be less"),
      std::string::npos);
  options.average = Average::kMax;
  options.skipped = 3;
  EXPECT_NE(preamble("x", options, 1).find("slowest rank's own mean, skipped iterations among them (-a 3)"),
            std::string::npos);
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
                                                       {"-f", "0"},
                                                       {"-K", "3"},
                                                       {"--ranks", "0"},
                                                       {"-c", "0", "--plant-error"},
                                                       {"-b", "1", "-e", "2", "-i", "0"}};
  for (const auto& arguments : wrong) EXPECT_THROW(parsed(arguments), UsageError) << arguments.front();
}

}  // namespace
}  // namespace tutti::perf
