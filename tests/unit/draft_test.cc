#include "diagnose/draft.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"

namespace tutti::comm {
namespace {

class Drafts : public testing::Test {
 protected:
  Drafts() : folder(testing::TempDir() + "tutti-drafts-" + std::to_string(randomNumber())) {
    std::filesystem::create_directory(folder);
  }
  ~Drafts() override { std::filesystem::remove_all(folder); }

  std::string add(const std::string& path) const {
    std::ofstream(path) << "{";
    return path;
  }
  // As a process leaves it that is killed while it writes.
  std::string orphan() const { return orphanIn(folder); }
  std::string orphanIn(const std::string& place) const {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string name = draftOf(place + "/tutti-1-rank0.json");
      const ssize_t n = ::write(ends[1], name.data(), name.size());
      ::_exit(n > 0 ? 0 : 1);
    }
    std::string name(4096, '\0');
    const ssize_t n = ::read(ends[0], name.data(), name.size());
    name.resize(n > 0 ? static_cast<size_t>(n) : 0);
    for (const int end : ends) ::close(end);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    return add(name);
  }

  const std::string folder;
};

TEST_F(Drafts, OfProcessesThatHaveEndedAreRemoved) {
  const std::string left = orphan();
  ASSERT_TRUE(std::filesystem::exists(left)) << left;
  removeOrphans(folder);
  EXPECT_FALSE(std::filesystem::exists(left)) << left;
}

// As in a folder that hosts share: without /proc nothing tells one of them from another.
TEST_F(Drafts, StayWhereThisHostHasNoName) {
  constexpr int kRemoved = 1, kForbidden = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) ::_exit(kForbidden);
    if (::chroot(folder.c_str()) != 0 || ::chdir("/") != 0) ::_exit(kForbidden);
    const std::string left = orphanIn("");
    removeOrphans("/");
    ::_exit(std::filesystem::exists(left) ? 0 : kRemoved);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kForbidden) GTEST_SKIP() << "may not change its root folder";
  EXPECT_EQ(status, 0) << "the draft of another host may have been removed";
}

TEST_F(Drafts, OfOthersStay) {
  const std::string left = orphan();
  std::string elsewhere = left;  // the same number on another host
  const size_t home = std::string("tutti-1-rank0.json.").size() + folder.size() + 1;
  elsewhere[home] = elsewhere[home] == '0' ? '1' : '0';
  for (const std::string& path :
       {add(draftOf(folder + "/tutti-1-rank1.json")), add(elsewhere), add(folder + "/tutti-1-rank1.json"),
        add(folder + "/mine.part"), add(folder + "/a.b.c.part"), add(left + ".json")}) {
    removeOrphans(folder);
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
  }
  EXPECT_FALSE(std::filesystem::exists(left)) << left;
  removeOrphans(folder + "/nowhere");
}

}  // namespace
}  // namespace tutti::comm
