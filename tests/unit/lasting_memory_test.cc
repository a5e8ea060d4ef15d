// Memory of the program that stays where it is: who finds it, and who is told that it ends.
#include "window/lasting_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <vector>

namespace tutti::window {
namespace {

std::vector<uint64_t> ended;  // told by forget()

void forget(const void*, const Lasting& memory) noexcept { ended.push_back(memory.number); }

class LastingMemoryTest : public testing::Test {
 protected:
  std::optional<Lasting> find(size_t begin, size_t bytes) const { return all_.find(memory_.data() + begin, bytes); }
  uint64_t add(size_t begin, size_t bytes) { return all_.add(memory_.data() + begin, bytes); }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
  LastingMemory all_;
};

TEST_F(LastingMemoryTest, FindsTheOldestPieceThatHoldsAllOfIt) {
  EXPECT_FALSE(find(0, 1));
  const uint64_t first = add(100, 200), second = add(100, 400);
  EXPECT_EQ(find(100, 200)->number, first);
  EXPECT_EQ(find(299, 1)->number, first);
  EXPECT_EQ(find(299, 2)->number, second);
  EXPECT_EQ(find(100, 200)->bytes, 200u);
  EXPECT_FALSE(find(99, 2));
  EXPECT_FALSE(find(499, 2));
  EXPECT_FALSE(find(500, 1));
  EXPECT_FALSE(find(100, SIZE_MAX));
  all_.remove(first);
  EXPECT_EQ(find(100, 200)->number, second);
  all_.remove(first);
  all_.remove(second);
  EXPECT_FALSE(find(100, 200));
  EXPECT_GT(add(100, 200), second) << "no number is given twice";
}

TEST_F(LastingMemoryTest, TellsEachOnceWhatEnds) {
  ended.clear();
  const int one = 0, other = 0;
  const uint64_t first = add(0, 10), second = add(0, 10);
  all_.tell(&one, forget);
  all_.tell(&one, forget);
  all_.remove(first);
  EXPECT_EQ(ended, std::vector<uint64_t>{first});
  all_.tell(&other, forget);
  all_.remove(second);
  EXPECT_EQ(ended, (std::vector<uint64_t>{first, second, second}));
  all_.remove(second);
  EXPECT_EQ(ended.size(), 3u);
}

// As where it ended between finding and keeping.
TEST_F(LastingMemoryTest, TellsAgainOfWhatIsNoMore) {
  ended.clear();
  const int one = 0;
  all_.tell(&one, forget);
  const uint64_t number = add(0, 10);
  const Lasting found = *find(0, 10);
  EXPECT_FALSE(all_.tellAgain(found));
  EXPECT_TRUE(ended.empty());
  all_.remove(number);
  EXPECT_TRUE(all_.tellAgain(found));
  EXPECT_EQ(ended, (std::vector<uint64_t>{number, number}));
}

TEST_F(LastingMemoryTest, AChildOfForkKnowsOfNoneOfIt) {
  const auto isKnown = [&] { return LastingMemory::ofProcess().find(memory_.data(), 10).has_value(); };
  std::optional<Lasts> lasts;
  lasts.emplace(memory_.data(), 10);
  EXPECT_TRUE(isKnown());
  const pid_t child = ::fork();
  if (child == 0) {
    if (isKnown()) ::_exit(1);
    const Lasts own(memory_.data(), 10);
    lasts.reset();  // its parent's, which may well have the same number there
    ::_exit(isKnown() ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(isKnown());
  Lasts moved = std::move(*lasts);
  lasts.reset();
  EXPECT_TRUE(isKnown());
}

}  // namespace
}  // namespace tutti::window
