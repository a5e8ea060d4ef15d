#include "process/private_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "process/fd.h"
#include "support/other_user.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using test::kNobody;

constexpr mode_t kAnybody = 01777;  // as /tmp has it

class PrivateFile : public testing::Test {
 protected:
  PrivateFile() : folder(testing::TempDir() + "tutti-private-" + std::to_string(randomNumber())) {
    fs::create_directory(folder);
    EXPECT_EQ(::chmod(folder.c_str(), kAnybody), 0);
  }
  ~PrivateFile() override { fs::remove_all(folder); }

  // A file of the user who reads in these tests: any but root, whose files a group may read.
  std::string make(mode_t mode, const std::string& content = "a secret \n") const {
    const std::string path = folder + "/" + std::to_string(randomNumber());
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(!test::mayBeAnotherUser() || ::chown(path.c_str(), kNobody, gid_t(-1)) == 0);
    return path;
  }
  // What a process of that user reads, or why it does not, and the error's code.
  static std::string readAs(uid_t user, const std::string& path) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = test::asUser(user, [&] {
      const std::string text = readHere(path);
      return ::write(ends[1], text.data(), text.size()) < 0;
    });
    ::close(ends[1]);
    std::string text(4096, '\0');
    const ssize_t n = ::read(ends[0], text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    ::close(ends[0]);
    EXPECT_EQ(test::statusOf(child), 0);
    return text;
  }
  static std::string read(const std::string& path) {
    return readAs(test::mayBeAnotherUser() ? kNobody : ::geteuid(), path);
  }
  static std::string readHere(const std::string& path) try {
    return readPrivateFile(path, 100);
  } catch (const Error& error) {
    return (error.code() == ErrorCode::kSystem ? "cannot: " : "refused: ") + std::string(error.what());
  }
  static void expectRefused(const std::string& text, const std::string& why) {
    EXPECT_TRUE(text.starts_with("refused: ")) << text;
    EXPECT_NE(text.find(why), std::string::npos) << text;
  }

  const std::string folder;
};

TEST_F(PrivateFile, IsReadByItsUserAlone) {
  for (const mode_t mode : {0600, 0400, 0700}) EXPECT_EQ(read(make(mode)), "a secret");
  for (const mode_t mode : {0644, 0604, 0640, 0440}) {
    const std::string path = make(mode);
    expectRefused(read(path), fmt::format("its mode is {:04o}: other users may read", mode));
    expectRefused(read(path), "chmod 600 " + path);
  }
  for (const mode_t mode : {0620, 0602, 0666}) expectRefused(read(make(mode)), "other users may change");
}

TEST_F(PrivateFile, OfRootsIsReadByAGroupToo) {
  if (!test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  for (const mode_t mode : {0640, 0440, 0644, 0660}) {
    const std::string path = make(mode);
    ASSERT_EQ(::chown(path.c_str(), 0, gid_t(-1)), 0);  // the process that reads keeps root's group
    if (mode == 0640 || mode == 0440) {
      EXPECT_EQ(read(path), "a secret");
    } else {
      expectRefused(read(path), "have it made with mode 0400, or with 0440 for a group of yours");
    }
  }
}

TEST_F(PrivateFile, OfAnotherUserIsRefused) {
  if (!test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  expectRefused(readHere(make(0600)), "it belongs to user 65534, who could change it");
}

// A reader that waits for somebody to write would wait for ever.
TEST_F(PrivateFile, IsNoPipeAndNothingElse) {
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expectRefused(readHere(pipe), "it is a pipe, not a regular file");
  expectRefused(readHere(folder), "it is a folder");
  expectRefused(readHere("/dev/zero"), "it is a device");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/socket";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expectRefused(readHere(path), "it is a socket");
}

// There is nothing to wait for.
TEST_F(PrivateFile, ThatCannotBeReadHoweverLongOneWaitsIsRefused) {
  if (!test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  const std::string roots = make(0600), own = make(0200);
  ASSERT_EQ(::chown(roots.c_str(), 0, gid_t(-1)), 0);
  expectRefused(read(roots), "it cannot be read: Permission denied; it is root's");
  expectRefused(read(own), "it cannot be read: Permission denied; run `chmod 600 " + own + "`");
  const std::string shut = folder + "/shut", link = folder + "/link";
  fs::create_directory(shut);
  ASSERT_EQ(::chmod(shut.c_str(), 0700), 0);
  expectRefused(read(shut + "/secret"), "it cannot be read: Permission denied; see the folders above it");
  fs::create_symlink(link, link);
  expectRefused(read(link), "it cannot be read: Too many levels of symbolic links");
  expectRefused(read(own + "/secret"), "it cannot be read: Not a directory");
}

// As Kubernetes mounts them: what they lead to counts.
TEST_F(PrivateFile, IsFoundThroughLinks) {
  const std::string good = make(0600), open = make(0644);
  fs::create_symlink(good, folder + "/good");
  fs::create_symlink(open, folder + "/open");
  EXPECT_EQ(read(folder + "/good"), "a secret");
  expectRefused(read(folder + "/open"), "its mode is 0644");
}

TEST_F(PrivateFile, IsNoLongerThanAsked) {
  EXPECT_EQ(read(make(0600, std::string(100, 'x'))), std::string(100, 'x'));
  expectRefused(read(make(0600, std::string(101, 'x'))), "more than 100 bytes");
  EXPECT_EQ(readHere(folder + "/nowhere"), "cannot: it cannot be read: No such file or directory");
}

TEST_F(PrivateFile, IsWrittenWhereNothingIs) {
  const std::string path = folder + "/new";
  ASSERT_EQ(writePrivateFile(AT_FDCWD, path, "words"), 0);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(readHere(path), "words");
  EXPECT_EQ(writePrivateFile(AT_FDCWD, path, "others"), EEXIST);
  EXPECT_EQ(writePrivateFile(AT_FDCWD, folder + "/nowhere/new", ""), ENOENT);
  const int at = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(writePrivateFile(at, "beside", "words"), 0);
  ::close(at);
  EXPECT_EQ(readHere(folder + "/beside"), "words");
}

// Another user has laid links where a file is to come.
TEST_F(PrivateFile, GoesThroughNoLinkOfAnotherUser) {
  if (!test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  const std::string mine = folder + "/mine", link = folder + "/link", dangling = folder + "/dangling";
  ASSERT_EQ(writePrivateFile(AT_FDCWD, mine, "what must stay"), 0);
  const pid_t other = test::asNobody([&] {
    return ::symlink(mine.c_str(), link.c_str()) | ::symlink((folder + "/not-yet").c_str(), dangling.c_str());
  });
  ASSERT_EQ(test::statusOf(other), 0);
  for (const std::string& path : {link, dangling}) EXPECT_EQ(writePrivateFile(AT_FDCWD, path, "spoilt"), EEXIST);
  EXPECT_EQ(readHere(mine), "what must stay");
  EXPECT_FALSE(fs::exists(folder + "/not-yet"));
}

}  // namespace
}  // namespace tutti
