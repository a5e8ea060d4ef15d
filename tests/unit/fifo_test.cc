// Where payloads lie that are under way, and how many there are.
#include "link/fifo.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "link/link.h"

namespace tutti::link {
namespace {

constexpr uint32_t kSlotBytes = 64 << 10, kDepth = 8, kLines = 64;

struct Kind {
  bool divides = true;
  uint32_t depth = kDepth, lines = kLines;
};
constexpr Kind kWhole{false}, kDivided, kPair{true, slots::kDepthOfPair, slots::kLinesOfPair};

struct Ends {
  explicit Ends(const Kind& kind) : memory(Fifo::bytesFor(kSlotBytes, kind.depth, kind.lines) / sizeof(Counter)) {
    const Fifo fifo = Fifo::over(reinterpret_cast<std::byte*>(memory.data()), kSlotBytes, kind.depth, kind.lines);
    send.fifo = recv.fifo = kind.divides ? fifo.divided() : fifo;
  }
  std::vector<Counter> memory;
  SendEnd send;
  RecvEnd recv;
};

struct Place {
  const std::byte* begin;
  size_t bytes;
  bool meets(const Place& other) const { return begin < other.begin + other.bytes && other.begin < begin + bytes; }
};

// As many as have room, one after the other.
int roomFor(Ends& ends, uint32_t bytes) {
  int posts = 0;
  for (; ends.send.hasRoomFor(bytes); ++posts) {
    ends.send.place(bytes);
    ends.send.postQuietly({}, bytes);
  }
  return posts;
}

int roomFor(const Kind& kind, uint32_t bytes) {
  Ends ends(kind);
  return roomFor(ends, bytes);
}

TEST(FifoPlaces, AreAsManyAsLinesForWhatTakesNoWholeSlot) {
  for (const uint32_t bytes : {0U, 8U, kInlineBytes, 33U, 1024U})
    for (const Kind& kind : {kWhole, kDivided, kPair}) EXPECT_EQ(roomFor(kind, bytes), int(kind.lines)) << bytes;
  for (const uint32_t bytes : {1025U, 8192U}) {
    EXPECT_EQ(roomFor(kWhole, bytes), int{kDepth});
    for (const Kind& kind : {kDivided, kPair}) EXPECT_EQ(roomFor(kind, bytes), int(kind.lines)) << bytes;
  }
  for (const auto& [bytes, parts] :
       {std::pair(8193U, 4U), {16384U, 4U}, {16385U, 2U}, {32768U, 2U}, {32769U, 1U}, {kSlotBytes, 1U}}) {
    EXPECT_EQ(roomFor(kWhole, bytes), int{kDepth});
    for (const Kind& kind : {kDivided, kPair}) EXPECT_EQ(roomFor(kind, bytes), int(parts * kind.depth)) << bytes;
  }
}

// Whatever had room when links were eight slots deep still has it.
TEST(FifoPlaces, AreNeverFewerThanSlots) {
  std::mt19937 random(7);
  constexpr uint32_t kLengths[] = {8, 33, 256, 257, 1024, 1025, 8192, 8193, 16'384, 20'000, 32'768, 32'769, kSlotBytes};
  for (const Kind& kind : {kDivided, kPair}) {
    Ends ends(kind);
    for (int i = 0; i < 100'000; ++i) {
      const uint32_t bytes = kLengths[random() % std::size(kLengths)];
      const uint64_t released = ends.send.fifo.released->value.load();
      ASSERT_TRUE(ends.send.posted - released >= kind.depth || ends.send.hasRoomFor(bytes)) << i;
      if (ends.send.hasRoomFor(bytes)) {
        ends.send.place(bytes);
        ends.send.postQuietly({}, bytes);
      }
      if (released < ends.send.posted && random() % 2 == 0) ends.send.fifo.released->value.store(released + 1);
    }
  }
}

TEST(FifoPlaces, OfPayloadsUnderWayNeverMeet) {
  std::mt19937 random(11);
  constexpr uint32_t kLengths[] = {8,    32,   33,     256,    257,    1024,   1025,      4000,
                                   8192, 8193, 16'384, 20'000, 32'768, 40'000, kSlotBytes};
  for (const Kind& kind : {kWhole, kDivided, kPair}) {
    Ends ends(kind);
    std::deque<Place> underWay;
    size_t most = 0;
    for (int i = 0; i < 200'000; ++i) {
      // Runs of one kind, as calls make them, and all mixed.
      const uint32_t bytes =
          kLengths[i / 1000 % 2 == 0 ? random() % std::size(kLengths) : i / 100 % std::size(kLengths)];
      if (ends.send.hasRoomFor(bytes)) {
        const Place place{ends.send.place(bytes), bytes};
        for (const Place& other : underWay) ASSERT_FALSE(place.meets(other)) << i << ": " << bytes << " bytes";
        ends.send.postQuietly({}, bytes);
        underWay.push_back(place);
        most = std::max(most, underWay.size());
      }
      if (underWay.empty() || random() % 3 == 0) continue;
      ASSERT_EQ(ends.recv.payload(underWay.front().bytes), underWay.front().begin);
      ASSERT_TRUE(ends.recv.ready());
      ends.recv.releaseQuietly();
      underWay.pop_front();
    }
    EXPECT_EQ(most, size_t{kind.lines});
  }
}

}  // namespace
}  // namespace tutti::link
