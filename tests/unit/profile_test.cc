// The prices of the cost model: from a file and back, and what no file may say.
#include "plan/profile_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/profile_prices.h"

namespace tutti::plan {
namespace {

Profile unusual() {
  Profile profile;
  double value = 0.01;
  for (const Price& price : kPrices) price.of(profile) = std::clamp(value += 0.37, price.low, price.high);
  return profile;
}

std::string refusal(const std::string& text) {
  try {
    profileFromText(text, "some.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

std::string withPrices(const std::string& prices) { return R"({"tutti_profile": 1, "prices": {)" + prices + "}}"; }

TEST(Profile, EveryPriceComesBackFromItsText) {
  const Profile profile = unusual();
  EXPECT_EQ(profileFromText(profileText(profile, "a machine \xff \n of tests"), "some.json"), profile);
}

TEST(Profile, WhatIsNotNamedIsAsShipped) {
  Profile expected;
  expected.shm.latencyUs = 0.5;
  EXPECT_EQ(profileFromText(withPrices(R"("shm_latency_us": 0.5)"), "some.json"), expected);
}

TEST(Profile, TheShippedPricesKeepToTheirLimits) {
  EXPECT_EQ(profileFromText(profileText({}, ""), "some.json"), Profile());
}

TEST(Profile, ATextThatIsNoneIsRefusedInWords) {
  for (const char* text : {"", "{", "[]", "{}", R"({"tutti_profile": 1})", R"({"tutti_profile": 1, "prices": []})"})
    EXPECT_NE(refusal(text).find("some.json: no profile"), std::string::npos) << text;
  EXPECT_NE(refusal(R"({"tutti_profile": 2, "prices": {}})").find("version 2; this library reads version 1"),
            std::string::npos);
}

// Whoever shows the value calls itself for each of its brackets.
TEST(Profile, ATextThatIsNestedVeryDeeplyIsRefused) {
  constexpr size_t kDepth = 400'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  for (const std::string& text :
       {R"({"tutti_profile": )" + nested + R"(, "prices": {}})", withPrices(R"("shm_latency_us": )" + nested)})
    EXPECT_NE(refusal(text).find("some.json: no profile"), std::string::npos);
}

TEST(Profile, APriceThatIsNoneIsRefusedWithTheNames) {
  const std::string why = refusal(withPrices(R"("shm_latency": 0.5)"));
  EXPECT_NE(why.find("no price called 'shm_latency'"), std::string::npos) << why;
  EXPECT_NE(why.find("shm_latency_us"), std::string::npos) << why;
}

TEST(Profile, AValueThatNoMachineHasIsRefusedWithItsLimits) {
  for (const char* value : {"-1", "1e400", "\"fast\"", "null", "true", "[1]", "3"}) {
    const std::string why = refusal(withPrices(fmt::format(R"("shm_latency_us": {})", value)));
    // What is too large for a number ends the whole text.
    EXPECT_TRUE(why.find("shm_latency_us is to be a number from 0 to 1.99") != std::string::npos ||
                why.find("no profile") != std::string::npos)
        << value << why;
  }
}

TEST(Profile, AFileThatCannotBeReadIsNamed) {
  for (const char* path : {"/nonexistent/profile.json", "/"}) {
    try {
      readProfile(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::string(path) + ": can not be read"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Profile, ADigestTellsProfilesApart) {
  Profile other;
  other.skew += 1e-9;
  EXPECT_EQ(digestOf({}), "shipped");
  EXPECT_EQ(digestOf(other).size(), 16u);
  EXPECT_NE(digestOf(other), digestOf(unusual()));
}

// Each price of a host must count for something: one that no prediction depends on is a name without a meaning.
TEST(Profile, EveryPriceMovesAPrediction) {
  for (const Price& price : kPrices) {
    Profile dear;
    price.of(dear) = std::min(price.high, price.of(dear) * 1.5);
    bool moves = false;
    for (const char* transport : {"p2p", "shm", "tcp"})
      for (const int hosts : {1, 2})
        for (const size_t bytes : {size_t{8}, size_t{64} << 20}) {
          const auto predicted = [&](const Profile& profile) {
            ClusterModel machine;
            machine.ranks = 8, machine.hosts = hosts, machine.ranksPerHost = 8 / hosts, machine.ranksPerCore = 2;
            machine.prices = profile;
            machine.local = *linkOf(profile, transport, true), machine.remote = *linkOf(profile, "tcp", false);
            return choose({Collective::kAllReduce, bytes}, machine, schedule::Algorithm::kTwoShot, 0).best.predictedUs;
          };
          moves = moves || predicted(dear) != predicted({});
        }
    EXPECT_TRUE(moves) << price.name;
  }
}

}  // namespace
}  // namespace tutti::plan
