#include "link/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace tutti::link {
namespace {

Fingerprint fingerprintOf(uint64_t slot, int rank) noexcept {
  return {.count = ~slot,
          .operation = static_cast<uint32_t>(slot),
          .root = static_cast<uint16_t>(rank),
          .kindAndType = 0xff,
          .op = 0x5,
          .algorithm = 0xa};
}

// Of a long slot in memory that both ends map, the two edges: no byte of it goes a way of its own, and each page that
// is touched has to be found and cleared, by each of many links.
constexpr size_t kEdgeBytes = 256;

struct Range {
  size_t begin, end;
};
std::array<Range, 2> rangesOf(size_t bytes, bool mapped) noexcept {
  if (!mapped || bytes <= 2 * kEdgeBytes) return {{{0, bytes}, {bytes, bytes}}};
  return {{{0, kEdgeBytes}, {(bytes - kEdgeBytes) / sizeof(uint64_t) * sizeof(uint64_t), bytes}}};
}

// Calls part(at, word, bytes of it) for each word of the pattern. Every word differs from its neighbours, from the same
// word of other slots and from what the other end writes.
template <class Part>
void eachWord(size_t bytes, bool mapped, uint64_t slot, int rank, const Part& part) {
  const uint64_t first = (slot + 1) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 0xc2b2ae3d27d4eb4fu;
  for (const Range& range : rangesOf(bytes, mapped))
    for (size_t at = range.begin; at < range.end; at += sizeof first)
      part(at, first + at / sizeof first * 0x9e3779b97f4a7c15u, std::min(sizeof first, range.end - at));
}

void drive(Driver* driver) {
  if (driver != nullptr && driver->progress() == Progress::kFailed)
    throw Error(ErrorCode::kRemote, "self-test: " + driver->error());
}

}  // namespace

SelfTest::SelfTest(Connection& connection, int self, int peer, uint32_t depth)
    : connection_(connection), self_(self), peer_(peer), slots_(std::max(depth + 2, 5u)) {}

uint32_t SelfTest::sizeOfSlot(uint64_t slot) const noexcept {
  const uint32_t full = connection_.send.fifo.slotBytes;
  const uint32_t sizes[] = {8, full, 0, kInlineBytes, kInlineBytes + 1};
  return std::min(full, slot < std::size(sizes) ? sizes[slot] : 8);
}

bool SelfTest::advance() {
  SendEnd& send = connection_.send;
  RecvEnd& recv = connection_.recv;
  drive(send.driver);
  while (send.posted < slots_ && send.hasRoom()) post(send.posted);
  while (recv.received < slots_ && recv.ready()) {
    check(recv.received);
    recv.release();
  }
  const bool flushed = send.driver == nullptr || !send.driver->sending();
  return recv.received == slots_ && send.posted == slots_ && send.drained() && flushed;
}

void SelfTest::post(uint64_t slot) {
  SendEnd& send = connection_.send;
  const uint32_t bytes = sizeOfSlot(slot);
  const bool apart = connection_.gpuSlots != nullptr && bytes > kInlineBytes;
  std::vector<std::byte> aside(apart ? bytes : 0);
  std::byte* const place = apart ? aside.data() : send.place(bytes);
  eachWord(bytes, send.driver == nullptr, slot, self_,
           [&](size_t at, uint64_t word, size_t count) { std::memcpy(place + at, &word, count); });
  if (apart) connection_.gpuSlots->write(send.place(bytes), place, bytes);
  send.post(fingerprintOf(slot, self_), bytes);
}

void SelfTest::check(uint64_t slot) const {
  const Said said = connection_.recv.said();
  const uint32_t bytes = sizeOfSlot(slot);
  if (said.bytes != bytes || said.fingerprint != fingerprintOf(slot, peer_))
    throw Error(ErrorCode::kRemote, fmt::format("self-test: slot {} came with a wrong header ({} bytes instead of {})",
                                                slot, said.bytes, bytes));
  const bool apart = connection_.gpuSlots != nullptr && bytes > kInlineBytes;
  std::vector<std::byte> aside(apart ? bytes : 0);
  if (apart) connection_.gpuSlots->read(aside.data(), connection_.recv.payload(bytes), bytes);
  const std::byte* const payload = apart ? aside.data() : connection_.recv.payload(bytes);
  bool same = true;
  eachWord(bytes, connection_.recv.driver == nullptr, slot, peer_, [&](size_t at, uint64_t word, size_t count) {
    same = same && std::memcmp(payload + at, &word, count) == 0;
  });
  if (!same)
    throw Error(ErrorCode::kRemote,
                fmt::format("self-test: the {} bytes of slot {} did not arrive as they were sent", bytes, slot));
}

std::string SelfTest::state() const {
  return fmt::format("in the self-test: {} of {} slots sent, {} received", connection_.send.posted, slots_,
                     connection_.recv.received);
}

}  // namespace tutti::link
