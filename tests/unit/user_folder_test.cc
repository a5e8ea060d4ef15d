#include "process/user_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/random.h"
#include "control_ranks.h"
#include "launch/launcher.h"
#include "support/other_user.h"

namespace tutti::control::test {
namespace {

namespace fs = std::filesystem;

class UserFolder : public testing::Test {
 protected:
  UserFolder() : folder(testing::TempDir() + "tutti-folder-" + std::to_string(randomNumber())) {
    fs::create_directory(folder);
    EXPECT_EQ(::chmod(folder.c_str(), 0700), 0);
  }
  ~UserFolder() override { fs::remove_all(folder); }

  const std::string folder;
};

// Or a rank whose environment differs would look elsewhere than rank 0 has left something.
TEST_F(UserFolder, IsTheSameWhateverTheEnvironmentSays) {
  const auto foldersOf = [](settings::Environment::Values variables) {
    variables.merge(
        settings::Environment::Values{{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "127.0.0.1:29500"}});
    return readLaunch(settings::Environment(std::move(variables))).folders;
  };
  const auto bare = foldersOf({});
  EXPECT_FALSE(bare.empty());
  EXPECT_EQ(foldersOf({{"XDG_RUNTIME_DIR", folder}, {"HOME", folder}, {"TMPDIR", folder}, {"USER", "x"}}), bare);
  EXPECT_EQ(bare, userFolders());
}

TEST_F(UserFolder, IsTheFirstThatIsThere) {
  const std::string other = folder + "/other";
  EXPECT_EQ(chooseUserFolder({folder, other}), folder);
  EXPECT_FALSE(fs::exists(other));
  EXPECT_EQ(chooseUserFolder({folder + "/nowhere", folder}), folder);
  EXPECT_EQ(chooseUserFolder({}), "");
}

TEST_F(UserFolder, IsMadeByWhoeverAsksFirst) {
  const std::string made = folder + "/made";
  inThreads(8, [&](int) { EXPECT_EQ(chooseUserFolder({folder + "/nowhere", made}), made); });
  struct stat there {};
  ASSERT_EQ(::stat(made.c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 07777, 0700U);
  EXPECT_FALSE(fs::exists(folder + "/nowhere")) << "it is the system's to make";
}

TEST_F(UserFolder, IsClosedToAllOthers) {
  for (const mode_t mode : {0755, 0710, 0701, 0770, 01777}) {
    ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
    EXPECT_FALSE(openUserFolder(folder)) << mode;
    EXPECT_EQ(chooseUserFolder({folder}), "") << mode;
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_TRUE(openUserFolder(folder));
}

TEST_F(UserFolder, IsNoLinkAndNoFile) {
  const std::string link = folder + "/link", file = folder + "/file";
  fs::create_directory_symlink(folder, link);
  EXPECT_FALSE(openUserFolder(link));
  EXPECT_EQ(chooseUserFolder({link}), "");
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(openUserFolder(file));
  EXPECT_EQ(chooseUserFolder({file}), "");
}

TEST_F(UserFolder, IsNotAnotherUsers) {
  if (!tutti::test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(folder.c_str(), tutti::test::kNobody, gid_t(-1)), 0);
  EXPECT_FALSE(openUserFolder(folder));
  EXPECT_EQ(chooseUserFolder({folder}), "");
}

}  // namespace
}  // namespace tutti::control::test
