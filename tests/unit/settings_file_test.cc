#include "settings/settings_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "settings/settings.h"
#include "settings/survey.h"
#include "support/variables.h"
#include "team/config.h"

namespace tutti::settings {
namespace {

namespace fs = std::filesystem;
using test::Setting;
using Variables = test::Settings;

class SettingsFile : public testing::Test {
 protected:
  SettingsFile() : folder_(testing::TempDir() + "tutti-conf-" + std::to_string(randomNumber())) {
    fs::create_directory(folder_);
  }
  ~SettingsFile() override { fs::remove_all(folder_); }

  // A new file each time: what was read once is not read again.
  std::string make(const std::string& content, mode_t mode = 0644) const {
    const std::string path = folder_ + "/" + std::to_string(randomNumber());
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static std::string refusal() {
    try {
      comm::Config::fromEnvironment();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  }
  const std::string folder_;
};

TEST_F(SettingsFile, HasNamesAndValues) {
  FileSettings all;
  addSettings("TUTTI_ALGO=ring\n\n  # TUTTI_CHANNELS=9\n TUTTI_CHANNELS = 3 \r\nTUTTI_JOB=a=b # c\nTUTTI_DEBUG=", "x",
              all);
  addSettings("TUTTI_ALGO=tree\nTUTTI_GROUP_SIZE=2\n", "y", all);
  const std::map<std::string, std::string> expected{{"TUTTI_ALGO", "ring"},
                                                    {"TUTTI_CHANNELS", "3"},
                                                    {"TUTTI_JOB", "a=b # c"},
                                                    {"TUTTI_DEBUG", ""},
                                                    {"TUTTI_GROUP_SIZE", "2"}};
  EXPECT_EQ(all.values, expected);
  EXPECT_TRUE(all.problems.empty());
}

TEST_F(SettingsFile, SaysWhatIsWrongAndInWhichLine) {
  FileSettings all;
  addSettings(
      "TUTTI_ALGO\nNCCL_ALGO=ring\n\nTUTTI_SECRET=abc\nTUTTI_ID=1\nTUTTI_CONF_FILE=x\nTUTTI_ROOT=a:1\nTUTTI_JOB=a" +
          std::string(1, '\0'),
      "conf", all);
  EXPECT_TRUE(all.values.empty());
  const char* const parts[] = {
      "conf, line 1: expected TUTTI_NAME=VALUE", "conf, line 2: expected TUTTI_NAME=VALUE",
      "conf, line 4: TUTTI_SECRET is a secret",  "conf, line 5: TUTTI_ID is a secret",
      "conf, line 6: a file of settings",        "conf, line 7: TUTTI_ROOT is for a process or a job",
      "conf, line 8: a value has no zero byte"};
  ASSERT_EQ(all.problems.size(), std::size(parts));
  for (size_t i = 0; i < std::size(parts); ++i) EXPECT_TRUE(all.problems[i].starts_with(parts[i])) << all.problems[i];
}

TEST_F(SettingsFile, CountsWhereTheEnvironmentSaysNothing) {
  const Variables set({{"TUTTI_CONF_FILE", make("TUTTI_CHANNELS=3\nTUTTI_GROUP_SIZE=4\nTUTTI_ALGO=ring\nTUTTI_X=1\n")},
                       {"TUTTI_GROUP_SIZE", "5"},
                       {"TUTTI_ALGO", ""}});
  const comm::Config config = comm::Config::fromEnvironment();
  EXPECT_EQ(config.channels, 3);
  EXPECT_EQ(config.groupSize, 5);
  EXPECT_FALSE(config.algorithms) << "empty, but there: it hides the file's";
  EXPECT_EQ(config.variables.at("TUTTI_CHANNELS"), "3") << "a line counts as a variable that is set";
  const auto strange = strangeNames(Environment());
  ASSERT_EQ(strange.size(), 1u);
  EXPECT_TRUE(strange.front().starts_with("TUTTI_X is not a setting")) << strange.front();
}

TEST_F(SettingsFile, OfTheUserIsReadWhereNoOtherIsNamed) {
  std::ofstream(folder_ + "/.tutti.conf") << "TUTTI_HEARTBEAT_MS=7\n";
  const std::string home = ::getenv("HOME") ? ::getenv("HOME") : "";
  {
    const Variables set({Setting{"HOME", folder_}});
    EXPECT_EQ(number("TUTTI_HEARTBEAT_MS"), 7);
    const Variables other({Setting{"TUTTI_CONF_FILE", make("TUTTI_GROUP_SIZE=2\n")}});
    EXPECT_EQ(number("TUTTI_HEARTBEAT_MS"), 20000);
  }
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(number("TUTTI_HEARTBEAT_MS"), 20000);
}

TEST_F(SettingsFile, ThatIsNamedMustBeThereAndTrusted) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::pair<std::string, std::string> wrong[] = {{folder_ + "/none", "cannot be read: No such file"},
                                                       {folder_, "is no regular file"},
                                                       {fifo, "is no regular file"},
                                                       {make("", 0666), "may be written to by others"},
                                                       {make("", 0664), "may be written to by others"},
                                                       {make(std::string(70'000, '#')), "is longer than 65536 bytes"}};
  for (const auto& [path, text] : wrong) {
    const Variables set({Setting{"TUTTI_CONF_FILE", path}});
    EXPECT_NE(refusal().find("TUTTI_CONF_FILE: " + path + " " + text), std::string::npos) << path << ": " << refusal();
  }
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace tutti::settings
