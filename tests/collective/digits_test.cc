// Trains the digits example with 1, 2 and 4 processes: the same losses step by step, and a network that has learnt.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

constexpr double kRelativeTolerance = 1e-6;  // sums of doubles in another order, over some 600 steps

struct Training {
  int status = -1;
  std::string output;
  std::vector<double> stepLosses, epochLosses;
  double accuracy = 0;  // per cent, after the last epoch
};

std::string program() { return TUTTI_BIN_DIR "/02_digits"; }

void readLine(const std::string& line, Training& training) {
  double loss = 0, accuracy = 0;
  int epoch = 0;
  if (std::sscanf(line.c_str(), "step loss %lf", &loss) == 1) training.stepLosses.push_back(loss);
  if (std::sscanf(line.c_str(), "epoch %d loss %lf test accuracy %lf", &epoch, &loss, &accuracy) == 3) {
    training.epochLosses.push_back(loss);
    training.accuracy = accuracy;
  }
}

Training train(int ranks, const std::string& settings) {
  Training training;
  const std::string command = settings + " " + program() + " --steps --ranks " + std::to_string(ranks) + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return training;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    readLine(line.data(), training);
    if (training.output.size() < 4000) training.output += line.data();
  }
  const int status = pclose(pipe);
  training.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return training;
}

// One process: what every other run is compared with.
const Training& reference() {
  static const Training one = train(1, "");
  return one;
}

void expectLearnt(const Training& training) {
  ASSERT_EQ(training.status, 0) << training.output;
  ASSERT_EQ(training.epochLosses.size(), 20u) << training.output;
  EXPECT_EQ(training.stepLosses.size() % training.epochLosses.size(), 0u);
  EXPECT_GE(training.accuracy, 95) << training.output;
  EXPECT_LT(training.epochLosses.back(), training.epochLosses.front() / 10);
}

void expectSameCurve(const Training& training) {
  const std::vector<double>& expected = reference().stepLosses;
  ASSERT_EQ(training.stepLosses.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(training.stepLosses[i], expected[i], kRelativeTolerance * std::abs(expected[i])) << "step " << i;
  }
}

class Digits : public testing::TestWithParam<std::pair<int, const char*>> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(program())) GTEST_SKIP() << program() << " was not built (TUTTI_BUILD_EXAMPLES)";
  }
};

TEST_P(Digits, LearnAsOneProcessDoes) {
  const auto [ranks, settings] = GetParam();
  expectLearnt(reference());
  const Training training = train(ranks, settings);
  expectLearnt(training);
  expectSameCurve(training);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Digits,
                         testing::Values(std::pair(1, ""), std::pair(2, "TUTTI_TRANSPORT=shm"), std::pair(3, ""),
                                         std::pair(4, "TUTTI_TRANSPORT=shm"), std::pair(4, "TUTTI_TRANSPORT=tcp")),
                         [](const auto& test) {
                           return "Case" + std::to_string(test.index) + "With" + std::to_string(test.param.first) +
                                  "Processes";
                         });

}  // namespace
