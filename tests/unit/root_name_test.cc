#include "job/root_name.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>

#include "base/random.h"
#include "control_ranks.h"
#include "join/root.h"
#include "net/socket.h"
#include "process/private_file.h"
#include "support/other_user.h"
#include "wire/dial.h"

namespace tutti::control::test {
namespace {

namespace fs = std::filesystem;

class NameOfARoot : public testing::Test {
 protected:
  NameOfARoot() : folder(testing::TempDir() + "tutti-name-" + std::to_string(randomNumber())) {
    fs::create_directory(folder);
    EXPECT_EQ(::chmod(folder.c_str(), 0700), 0);
  }
  ~NameOfARoot() override { fs::remove_all(folder); }

  std::optional<std::string> found() const { return rootNameIn(folder, job); }
  void leave(const std::string& text) const { ASSERT_EQ(writePrivateFile(AT_FDCWD, file, text), 0); }

  const uint64_t job = randomNumber();
  const std::string folder, file = folder + "/" + rootUnixName(job);
};

TEST_F(NameOfARoot, IsAnotherInEachRun) {
  std::string first, second;
  first = RootName(folder, job).text();
  second = RootName(folder, job).text();
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, second);
}

TEST_F(NameOfARoot, LiesInTheFolderWhileItsRootIsThere) {
  EXPECT_EQ(found(), std::nullopt);
  {
    const RootName name(folder, job);
    EXPECT_EQ(found(), name.text());
    EXPECT_EQ(rootNameIn(folder, job + 1), std::nullopt) << "another job's";
    struct stat there {};
    ASSERT_EQ(::stat(file.c_str(), &there), 0);
    EXPECT_EQ(there.st_mode & 07777, 0600U);
  }
  EXPECT_EQ(found(), std::nullopt);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(NameOfARoot, IsNoneWhereThereIsNoFolder) {
  EXPECT_EQ(RootName("", job).text(), "");
  EXPECT_EQ(RootName(folder + "/nowhere", job).text(), "");
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_EQ(RootName(folder, job).text(), "");
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(NameOfARoot, OfALaterRootStays) {
  RootName first(folder, job);
  const RootName second(folder, job);
  EXPECT_EQ(found(), second.text());
  first.withdraw();
  EXPECT_EQ(found(), second.text());
}

// A process that was killed, a full disk, a version to come: whatever is wrong there is not taken, and does not stay.
TEST_F(NameOfARoot, ReplacesWhatIsThere) {
  const std::string sound = "tutti-root-" + std::string(32, '0'), target = folder + "/target";
  ASSERT_EQ(writePrivateFile(AT_FDCWD, target, sound), 0);
  const std::pair<const char*, std::function<void()>> wrong[] = {
      {"empty", [&] { leave(""); }},
      {"cut short", [&] { leave(sound.substr(1)); }},
      {"too long", [&] { leave(sound + "0"); }},
      {"not drawn", [&] { leave("tutti-root-" + std::string(32, 'x')); }},
      {"not a name", [&] { leave(std::string(sound.size(), '\0')); }},
      {"open to others", [&] { leave(sound), ::chmod(file.c_str(), 0644); }},
      {"a link", [&] { fs::create_symlink(target, file); }},
      {"a dangling link", [&] { fs::create_symlink(folder + "/nowhere", file); }},
      {"a pipe", [&] { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); }},
  };
  for (const auto& [what, put] : wrong) {
    put();
    EXPECT_EQ(found(), std::nullopt) << what;
    {
      const RootName name(folder, job);
      EXPECT_EQ(found(), name.text()) << what;
    }
    EXPECT_FALSE(fs::exists(fs::symlink_status(file))) << what;
  }
  std::stringstream kept;
  kept << std::ifstream(target).rdbuf();
  EXPECT_EQ(kept.str(), sound) << "a link was followed";
}

TEST_F(NameOfARoot, IsNotTakenFromAnotherUser) {
  if (!tutti::test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  leave("tutti-root-" + std::string(32, '0'));
  EXPECT_TRUE(found());
  ASSERT_EQ(::chown(file.c_str(), tutti::test::kNobody, gid_t(-1)), 0);
  EXPECT_EQ(found(), std::nullopt);
  ASSERT_EQ(::chown(folder.c_str(), tutti::test::kNobody, gid_t(-1)), 0);
  EXPECT_EQ(RootName(folder, job).text(), "");
}

// Where nothing can be put under the name, ranks find the root at the other one; and no draft stays.
TEST_F(NameOfARoot, IsNoneWhereItCannotLie) {
  fs::create_directories(file + "/full");
  EXPECT_EQ(RootName(folder, job).text(), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(NameOfARoot, OfAnotherJobThatIsThereIsLeftAlone) {
  const RootName first(folder, job);
  const UniqueFd listening = listenUnix(first.text());
  ASSERT_TRUE(listening);
  const Thrown thrown = thrownBy([&] { RootName(folder, job); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kSystem));
  for (const std::string& word : {fmt::format("process {}", ::getpid()), std::string("TUTTI_JOB")})
    EXPECT_NE(thrown.text.find(word), std::string::npos) << thrown.text;
  EXPECT_EQ(found(), first.text());
}

TEST_F(NameOfARoot, IsThereAsAWholeOrNotAtAll) {
  inThreads(8, [&](int who) {
    for (int i = 0; i < 50; ++i) {
      if (who < 4) {
        EXPECT_NE(RootName(folder, job).text(), "");
        continue;
      }
      std::stringstream text;
      if (std::ifstream in(file); in && text << in.rdbuf()) {
        EXPECT_EQ(text.str().size(), 43U);
      }
    }
  });
  EXPECT_TRUE(fs::is_empty(folder)) << "a draft was left";
}

// A rank that calls before rank 0 is there finds what a killed root has left. It looks again.
TEST_F(NameOfARoot, IsReadAgainInEachRound) {
  leave("tutti-root-" + std::string(32, '0'));
  RootPlace place = anyRootPlace();
  place.id.job = job;
  place.id.folder = folder;
  place.tcp = false;
  Reactor reactor;
  std::unique_ptr<Root> root;
  std::thread running;
  bool found = false;
  const auto dial = Dial::start(
      reactor, {rootContext(place.id), {}, {}, folder},
      [&](const std::shared_ptr<Line>& line) {
        found = true;
        line->close();
        reactor.stop();
      },
      [&](const std::string&) {
        if (root) return;
        root = std::make_unique<Root>(place, Network{}, soon());
        running = std::thread([&] { root->run(); });
      });
  reactor.after(soon().left(), [&] { reactor.stop(); });
  reactor.run([](const std::string& what) { ADD_FAILURE() << what; });
  dial->cancel();
  EXPECT_TRUE(found) << "the name that came later was not found";
  ASSERT_TRUE(root);
  root->halt();
  running.join();
}

}  // namespace
}  // namespace tutti::control::test
