// The window of a process, which holds all memory of tuttiMemAlloc, and the views that others have of it.
#include "window/view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "support/sanitized.h"
#include "tutti/tutti.h"

namespace tutti::window {
namespace {

constexpr size_t kLong = 3 * kPieceBytes + 4096;

UniqueFd ownFile() {
  std::string why;
  const int file = OwnWindow::ofProcess().fileForPeers(why);
  EXPECT_GE(file, 0) << why;
  return UniqueFd(::fcntl(file, F_DUPFD_CLOEXEC, 0));
}

std::shared_ptr<View> viewOf(UniqueFd file) {
  std::string why;
  auto view = View::of(std::move(file), why);
  EXPECT_NE(view, nullptr) << why;
  return view;
}

std::string refusalOf(UniqueFd file) {
  std::string why = "accepted";
  EXPECT_EQ(View::of(std::move(file), why), nullptr);
  return why;
}

std::byte* bytesOf(const std::shared_ptr<void>& memory) { return static_cast<std::byte*>(memory.get()); }

uint64_t placeOf(const void* begin, size_t bytes) {
  uint64_t place = 0;
  EXPECT_TRUE(OwnWindow::ofProcess().placeOf(static_cast<const std::byte*>(begin), bytes, place));
  return place;
}

uint64_t bytesInFile() {
  struct stat status {};
  EXPECT_EQ(::fstat(ownFile().get(), &status), 0);
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

// All the mappings that the kernel allows a process (vm.max_map_count).
class NoMoreMappings {
 public:
  NoMoreMappings() : begin_(static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_NONE, kKind, -1, 0))) {
    for (size_t at = 0; at < kBytes && !isFull_; at += 2 * size_t{kPage})
      isFull_ = ::mprotect(begin_ + at, kPage, PROT_READ) != 0;
  }
  ~NoMoreMappings() { ::munmap(begin_, kBytes); }
  NoMoreMappings(const NoMoreMappings&) = delete;
  NoMoreMappings& operator=(const NoMoreMappings&) = delete;
  bool isFull() const { return isFull_; }

 private:
  static constexpr size_t kPage = 4096, kBytes = 2 * size_t{kPage} * 70'000;
  static constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  std::byte* begin_;
  bool isFull_ = false;
};

// --- the owner's side ---

// A page among others cannot be unmapped there, which takes one mapping more; but it is emptied, and its place is free.
TEST(Window, PlacesThatWereFreedWithoutMappingsAreUsedAgain) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs mappings of its own";
  std::vector<std::shared_ptr<void>> buffers(64);
  for (auto& buffer : buffers) std::memset((buffer = OwnWindow::ofProcess().allocate(4096)).get(), 7, 4096);
  std::set<void*> freed;
  {
    const NoMoreMappings none;
    if (!none.isFull()) GTEST_SKIP() << "this kernel allows more mappings";
    for (size_t i = 1; i < buffers.size(); i += 2) {
      freed.insert(buffers[i].get());
      buffers[i].reset();
    }
  }
  size_t again = 0;
  for (size_t i = 1; i < buffers.size(); i += 2) {
    buffers[i] = OwnWindow::ofProcess().allocate(4096);
    again += freed.count(buffers[i].get());
    EXPECT_EQ(bytesOf(buffers[i])[0], std::byte{0});
  }
  EXPECT_EQ(again, freed.size());
}

TEST(Window, GivesOutMemoryThatIsZeroAndApart) {
  OwnWindow& window = OwnWindow::ofProcess();
  std::vector<std::shared_ptr<void>> all;
  for (const size_t bytes : {size_t{1}, size_t{5000}, kLong, size_t{4096}}) {
    all.push_back(window.allocate(bytes));
    ASSERT_NE(all.back(), nullptr);
    std::byte* const begin = bytesOf(all.back());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % 4096, 0u);
    EXPECT_EQ(begin[0], std::byte{0});
    EXPECT_EQ(std::memcmp(begin, begin + 1, bytes - 1), 0);
    std::memset(begin, static_cast<int>(all.size()), bytes);
  }
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(*bytesOf(all[i]), static_cast<std::byte>(i + 1));
}

TEST(Window, WhatIsFreedGoesBackAndComesAgainAsZeros) {
  OwnWindow& window = OwnWindow::ofProcess();
  const auto kept = window.allocate(4096);
  const uint64_t before = bytesInFile();
  auto memory = window.allocate(kLong);
  std::byte* const begin = bytesOf(memory);
  std::memset(begin, 7, kLong);
  EXPECT_GE(bytesInFile(), before + kLong);
  memory.reset();
  EXPECT_EQ(bytesInFile(), before);
  memory = window.allocate(kLong);
  EXPECT_EQ(bytesOf(memory), begin) << "the first place with room";
  EXPECT_EQ(begin[0], std::byte{0});
  EXPECT_EQ(std::memcmp(begin, begin + 1, kLong - 1), 0);
}

// Parts that were given back one by one are one again.
TEST(Window, LockedMemoryIsGivenBackAsWell) {
  OwnWindow& window = OwnWindow::ofProcess();
  const uint64_t before = bytesInFile();
  auto memory = window.allocate(kLong);
  if (::mlock(memory.get(), 64 << 10) != 0) GTEST_SKIP() << "no memory may be locked here";
  std::memset(memory.get(), 1, 64 << 10);  // a sanitizer locks nothing
  const uint64_t place = placeOf(memory.get(), kLong);
  EXPECT_GT(bytesInFile(), before);
  memory.reset();
  EXPECT_EQ(bytesInFile(), before);
  EXPECT_EQ(placeOf(window.allocate(kLong).get(), kLong), place) << "its place is free";
}

TEST(Window, JoinsWhatIsFree) {
  OwnWindow& window = OwnWindow::ofProcess();
  std::vector<std::shared_ptr<void>> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(window.allocate(kPieceBytes));
  std::byte* const first = bytesOf(parts[0]);
  ASSERT_EQ(bytesOf(parts[3]), first + 3 * kPieceBytes);
  for (const int i : {1, 3, 0, 2}) parts[static_cast<size_t>(i)].reset();
  EXPECT_EQ(bytesOf(window.allocate(4 * kPieceBytes)), first);
}

TEST(Window, KnowsWhatItHasGivenOut) {
  OwnWindow& window = OwnWindow::ofProcess();
  const auto memory = window.allocate(kLong);
  const std::byte* const begin = bytesOf(memory);
  const uint64_t place = placeOf(begin, kLong);
  EXPECT_EQ(placeOf(begin + 100, 1), place + 100);
  uint64_t found = 0;
  std::vector<std::byte> other(100);
  EXPECT_FALSE(window.placeOf(other.data(), other.size(), found));
  EXPECT_FALSE(window.placeOf(nullptr, 0, found));
  EXPECT_FALSE(window.placeOf(begin, kMostBytes, found)) << "beyond its end";
  EXPECT_FALSE(window.placeOf(begin, SIZE_MAX, found));
}

TEST(Window, WhatHasNoRoomInItIsNoError) {
  EXPECT_EQ(OwnWindow::ofProcess().allocate(size_t{1} << 62), nullptr);
  EXPECT_EQ(OwnWindow::ofProcess().allocate(kMostBytes), nullptr);
}

TEST(Window, IsUsedByThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([thread, &wrong] {
      for (int i = 0; i < 200; ++i) {
        const size_t bytes = 4096 * static_cast<size_t>(1 + (i * 7 + thread) % 50);
        const auto memory = OwnWindow::ofProcess().allocate(bytes);
        std::byte* const begin = bytesOf(memory);
        wrong += begin[0] != std::byte{0} || begin[bytes - 1] != std::byte{0};
        begin[0] = begin[bytes - 1] = static_cast<std::byte>(1 + thread);
        std::this_thread::yield();
        wrong += begin[0] != static_cast<std::byte>(1 + thread) || begin[bytes - 1] != begin[0];
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// --- views ---

TEST(View, ReadsWhatIsThereAndMapsNoMore) {
  const auto memory = OwnWindow::ofProcess().allocate(kLong);
  std::byte* const begin = bytesOf(memory);
  for (size_t i = 0; i < kLong; ++i) begin[i] = static_cast<std::byte>(i * 13 + i / 251);
  const auto view = viewOf(ownFile());
  ASSERT_NE(view, nullptr);
  const uint64_t place = placeOf(begin, kLong);
  const size_t before = view->mappedBytes();
  const std::byte* const seen = view->at(place, kLong);
  ASSERT_NE(seen, nullptr);
  EXPECT_NE(seen, begin) << "another mapping, which is to be read only";
  EXPECT_EQ(std::memcmp(seen, begin, kLong), 0);
  begin[kLong - 1] = std::byte{0x77};
  EXPECT_EQ(seen[kLong - 1], std::byte{0x77});
  EXPECT_LE(view->mappedBytes(), before + 4 * kPieceBytes);
  EXPECT_EQ(view->at(place + 5, 10), seen + 5) << "mapped once";
}

TEST(View, IsOneForAllWhoAsk) {
  const auto view = viewOf(ownFile());
  EXPECT_EQ(viewOf(ownFile()), view);
}

TEST(View, FollowsNoPlaceOutsideOfIt) {
  const auto view = viewOf(ownFile());
  ASSERT_NE(view, nullptr);
  struct stat status {};
  ASSERT_EQ(::fstat(ownFile().get(), &status), 0);
  const auto length = static_cast<uint64_t>(status.st_size);
  for (const auto& [place, bytes] : std::vector<std::pair<uint64_t, size_t>>{{0, 1},
                                                                             {kPieceBytes - 1, 1},
                                                                             {length, 1},
                                                                             {length - 1, 2},
                                                                             {length + kPieceBytes, 64},
                                                                             {UINT64_MAX, 1},
                                                                             {UINT64_MAX - 10, 64},
                                                                             {kPieceBytes, SIZE_MAX},
                                                                             {kPieceBytes, length},
                                                                             {kPieceBytes, 0}}) {
    EXPECT_EQ(view->at(place, bytes), nullptr) << place << ' ' << bytes;
    EXPECT_NE(view->fault(place, bytes).find("outside of the memory"), std::string_view::npos);
  }
  EXPECT_NE(view->at(length - 1, 1), nullptr);
  EXPECT_NE(view->at(kPieceBytes, 1), nullptr);
}

// As of a peer that has freed its buffer: no fault, and no old byte.
TEST(View, OfWhatIsFreedReadsZeros) {
  auto memory = OwnWindow::ofProcess().allocate(kLong);
  std::memset(memory.get(), 9, kLong);
  const uint64_t place = placeOf(memory.get(), kLong);
  const auto view = viewOf(ownFile());
  const std::byte* const seen = view->at(place, kLong);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen[kLong - 1], std::byte{9});
  memory.reset();
  EXPECT_EQ(seen[kLong - 1], std::byte{0});
  memory = OwnWindow::ofProcess().allocate(kLong);
  ASSERT_EQ(placeOf(memory.get(), kLong), place);
  std::memset(memory.get(), 5, kLong);
  EXPECT_EQ(seen[kLong - 1], std::byte{5}) << "the same place, for its owner and for others";
}

TEST(View, CannotBeWrittenThrough) {
  const UniqueFd file = ownFile();
  EXPECT_EQ(::mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0), MAP_FAILED);
  const char byte = 1;
  EXPECT_LT(::pwrite(file.get(), &byte, 1, kPieceBytes), 0);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
}

TEST(View, IsRefusedOfWhatIsNoWindow) {
  EXPECT_NE(refusalOf(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))).find("is not sealed"), std::string::npos);
  EXPECT_NE(refusalOf(createMemoryFile("tutti-test", kLong)).find(" bytes"), std::string::npos);
  EXPECT_NE(refusalOf(createMemoryFile("tutti-test", 2 * kPieceBytes)).find("no window"), std::string::npos)
      << "no card";
  const auto withCard = [](UniqueFd file) {
    const Card card{kMagic, {1, 2}};
    EXPECT_EQ(::pwrite(file.get(), &card, sizeof card, 0), static_cast<ssize_t>(sizeof card));
    return file;
  };
  UniqueFd unsealed(::memfd_create("tutti-test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4 * kPieceBytes), 0);
  EXPECT_NE(refusalOf(withCard(std::move(unsealed))).find("not sealed"), std::string::npos);
  EXPECT_NE(refusalOf(withCard(createMemoryFile("tutti-test", kLong))).find("bytes"), std::string::npos);
  EXPECT_NE(refusalOf(withCard(createMemoryFile("tutti-test", kPieceBytes))).find("bytes"), std::string::npos);
  EXPECT_NE(refusalOf(withCard(createMemoryFile("tutti-test", 2 * kMostBytes))).find("bytes"), std::string::npos);
  EXPECT_NE(viewOf(withCard(createMemoryFile("tutti-test", 2 * kPieceBytes))), nullptr);
}

TEST(View, OfTwoFilesThatSayTheSameAreTwo) {
  std::array<std::shared_ptr<View>, 2> views;
  for (size_t i = 0; i < 2; ++i) {
    UniqueFd file = createMemoryFile("tutti-test", 2 * kPieceBytes);
    const Card card{kMagic, {1, 2}};
    const auto byte = static_cast<char>('a' + i);
    ASSERT_EQ(::pwrite(file.get(), &card, sizeof card, 0), static_cast<ssize_t>(sizeof card));
    ASSERT_EQ(::pwrite(file.get(), &byte, 1, kPieceBytes), 1);
    views[i] = viewOf(std::move(file));
  }
  EXPECT_EQ(*views[0]->at(kPieceBytes, 1), std::byte{'a'});
  EXPECT_EQ(*views[1]->at(kPieceBytes, 1), std::byte{'b'});
}

TEST(View, ManyThreadsMapThePiecesTogether) {
  const size_t bytes = 16 * kPieceBytes;
  const auto memory = OwnWindow::ofProcess().allocate(bytes);
  for (size_t piece = 0; piece < 16; ++piece) bytesOf(memory)[piece * kPieceBytes] = static_cast<std::byte>(piece + 1);
  const uint64_t place = placeOf(memory.get(), bytes);
  const auto view = viewOf(ownFile());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (size_t piece = 0; piece < 16; ++piece) {
        const std::byte* const seen = view->at(place + piece * kPieceBytes, 64);
        wrong += seen == nullptr || *seen != static_cast<std::byte>(piece + 1);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// --- other processes ---

// What `body` says of itself in a child.
template <class Body>
int inChild(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Window, OfAProcessThatIsGoneIsStillThere) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {  // its own window, whose descriptor is the child's alone: the parent opens it by the child's table
    void* memory = nullptr;
    std::string why;
    if (tuttiMemAlloc(&memory, 4096) != tuttiSuccess) ::_exit(1);
    std::memset(memory, 42, 4096);
    std::array<uint64_t, 2> told{static_cast<uint64_t>(OwnWindow::ofProcess().fileForPeers(why)), 0};
    if (!OwnWindow::ofProcess().placeOf(static_cast<std::byte*>(memory), 4096, told[1])) ::_exit(2);
    if (::write(pipe[1], told.data(), sizeof told) != static_cast<ssize_t>(sizeof told)) ::_exit(3);
    for (;;) ::pause();
  }
  std::array<uint64_t, 2> told{};
  ASSERT_EQ(::read(pipe[0], told.data(), sizeof told), static_cast<ssize_t>(sizeof told));
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(told[0]);
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) GTEST_SKIP() << "the descriptors of a child may not be opened here: " << path;
  const auto view = viewOf(std::move(file));
  ASSERT_NE(view, nullptr);
  const std::byte* const seen = view->at(told[1], 4096);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen[4095], std::byte{42});
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(seen[4095], std::byte{42}) << "what was mapped";
  EXPECT_NE(view->at(told[1] + kPieceBytes, 1), nullptr) << "and what was not";
  for (const int end : pipe) ::close(end);
}

TEST(Window, OfAChildIsAnotherAndItsParentsBuffersStayTheParents) {
  void* memory = nullptr;
  ASSERT_EQ(tuttiMemAlloc(&memory, kLong), tuttiSuccess);
  std::memset(memory, 3, kLong);
  EXPECT_EQ(inChild([&] {
              uint64_t place = 0;
              if (OwnWindow::ofProcess().placeOf(static_cast<std::byte*>(memory), kLong, place)) return 1;
              void* own = nullptr;
              if (tuttiMemAlloc(&own, kLong) != tuttiSuccess) return 2;
              std::memset(own, 4, kLong);
              if (static_cast<std::byte*>(memory)[kLong - 1] != std::byte{3}) return 3;
              if (tuttiMemFree(memory) != tuttiSuccess || tuttiMemFree(own) != tuttiSuccess) return 4;
              return 0;
            }),
            0);
  EXPECT_EQ(static_cast<std::byte*>(memory)[kLong - 1], std::byte{3});
  EXPECT_EQ(tuttiMemFree(memory), tuttiSuccess);
}

// The child goes on with what it has; and a buffer that its parent allocates is another one.
TEST(Window, WhatAChildHasIsNotGivenOutAgain) {
  OwnWindow& window = OwnWindow::ofProcess();
  auto memory = window.allocate(kLong);
  std::memset(memory.get(), 3, kLong);
  const uint64_t place = placeOf(memory.get(), kLong), whole = bytesInFile();
  std::array<int, 2> told{}, asked{};
  ASSERT_EQ(::pipe2(told.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(asked.data(), O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    char word = 0;
    const bool goesOn = ::read(asked[0], &word, 1) == 1;
    const bool empty = *bytesOf(memory) == std::byte{0};  // its parent has given the pages back
    std::memset(memory.get(), 7, kLong);
    ::_exit(goesOn && empty && ::write(told[1], &word, 1) == 1 && ::read(asked[0], &word, 1) == 1 ? 0 : 1);
  }
  memory.reset();
  EXPECT_LT(bytesInFile(), whole);
  const auto next = window.allocate(kLong);
  EXPECT_NE(placeOf(next.get(), kLong), place);
  std::memset(next.get(), 5, kLong);
  char word = 'g';
  EXPECT_EQ(::write(asked[1], &word, 1), 1);
  EXPECT_EQ(::read(told[0], &word, 1), 1) << "the child has written";
  EXPECT_EQ(bytesOf(next)[0], std::byte{5});
  EXPECT_EQ(bytesOf(next)[kLong - 1], std::byte{5});
  EXPECT_EQ(::write(asked[1], &word, 1), 1);
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  for (const auto& pipe : {told, asked})
    for (const int end : pipe) ::close(end);
}

// The way without a window: memory is given out all the same.
void expectMemoryWithout(int limit, rlim_t most) {
  EXPECT_EQ(inChild([&] {
              rlimit limits{};
              if (::getrlimit(static_cast<__rlimit_resource_t>(limit), &limits) != 0) return 1;
              limits.rlim_cur = most;
              if (::setrlimit(static_cast<__rlimit_resource_t>(limit), &limits) != 0) return 2;
              std::string why;
              if (OwnWindow::ofProcess().fileForPeers(why) >= 0) return 3;
              if (why.find("ulimit") == std::string::npos) return 4;
              void* memory = nullptr;
              if (tuttiMemAlloc(&memory, 4096) != tuttiSuccess) return 5;
              std::memset(memory, 1, 4096);
              uint64_t place = 0;
              if (OwnWindow::ofProcess().placeOf(static_cast<std::byte*>(memory), 4096, place)) return 6;
              return tuttiMemFree(memory) == tuttiSuccess ? 0 : 7;
            }),
            0);
}

TEST(Window, IsNotThereWhereAddressesAreLimited) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has more addresses already";
  expectMemoryWithout(RLIMIT_AS, rlim_t{1} << 45);
}

TEST(Window, IsNotThereWhereFilesAreLimited) { expectMemoryWithout(RLIMIT_FSIZE, rlim_t{1} << 20); }

}  // namespace
}  // namespace tutti::window
