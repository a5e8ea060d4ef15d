#include "control/user_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/handshake.h"
#include "control_ranks.h"
#include "support/other_user.h"

namespace tutti::control::test {
namespace {

namespace fs = std::filesystem;

class KeyOfAUser : public testing::Test {
 protected:
  KeyOfAUser() : folder(testing::TempDir() + "tutti-key-" + std::to_string(randomNumber())) {
    fs::create_directory(folder);
    EXPECT_EQ(::chmod(folder.c_str(), 0700), 0);
  }
  ~KeyOfAUser() override { fs::remove_all(folder); }

  const std::string folder, file = folder + "/tutti-key";
};

TEST_F(KeyOfAUser, IsOneForAllThatAskAtOnce) {
  constexpr int kAsking = 16;
  std::vector<std::optional<UserKey>> keys(kAsking);
  inThreads(kAsking, [&](int i) { keys[size_t(i)] = userKeyIn(folder); });
  ASSERT_TRUE(keys[0]);
  EXPECT_NE(*keys[0], UserKey{});
  for (const auto& key : keys) EXPECT_EQ(key, keys[0]);
  EXPECT_EQ(userKey(folder), keys[0]);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "a draft was left";
}

TEST_F(KeyOfAUser, LiesInAFolderThatNobodyElseMayEnter) {
  for (const mode_t mode : {0755, 0770, 01777}) {
    ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
    EXPECT_FALSE(userKeyIn(folder)) << mode;
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  fs::create_symlink(folder, folder + "-link");
  EXPECT_FALSE(userKeyIn(folder + "-link"));
  fs::remove(folder + "-link");
  EXPECT_FALSE(userKeyIn(folder + "/nowhere"));
  EXPECT_TRUE(userKeyIn(folder));
}

TEST_F(KeyOfAUser, IsNotTakenFromAnotherUser) {
  if (!tutti::test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(folder.c_str(), tutti::test::kNobody, gid_t(-1)), 0);
  EXPECT_FALSE(userKeyIn(folder)) << "in a folder of theirs";
  EXPECT_FALSE(fs::exists(file));
  ASSERT_EQ(::chown(folder.c_str(), 0, gid_t(-1)), 0);
  ASSERT_TRUE(userKeyIn(folder));
  ASSERT_EQ(::chown(file.c_str(), tutti::test::kNobody, gid_t(-1)), 0);
  EXPECT_FALSE(userKeyIn(folder)) << "in a file of theirs";
}

TEST_F(KeyOfAUser, IsNotTakenFromAFileThatOthersCouldRead) {
  ASSERT_TRUE(userKeyIn(folder));
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  EXPECT_FALSE(userKeyIn(folder));
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(userKeyIn(folder));
}

}  // namespace
}  // namespace tutti::control::test
