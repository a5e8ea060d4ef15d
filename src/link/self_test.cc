#include "link/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
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

// Every word differs from its neighbours, from the same word of other slots and from what the other end writes.
void fillPattern(std::span<std::byte> out, uint64_t slot, int rank) noexcept {
  uint64_t word = (slot + 1) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 0xc2b2ae3d27d4eb4fu;
  for (size_t at = 0; at < out.size(); at += sizeof word, word += 0x9e3779b97f4a7c15u)
    std::memcpy(out.data() + at, &word, std::min(sizeof word, out.size() - at));
}

void drive(Driver* driver) {
  if (driver != nullptr && driver->progress() == Progress::kFailed)
    throw Error(ErrorCode::kRemote, "self-test: " + driver->error());
}

}  // namespace

SelfTest::SelfTest(Connection& connection, int self, int peer)
    : connection_(connection), self_(self), peer_(peer), slots_(std::max(connection.send.fifo.depth + 2, 5u)) {}

uint32_t SelfTest::sizeOfSlot(uint64_t slot) const noexcept {
  const uint32_t full = connection_.send.fifo.slotBytes;
  const uint32_t sizes[] = {8, full, 0, kInlineBytes};
  return std::min(full, slot < std::size(sizes) ? sizes[slot] : kInlineBytes + 1);
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
  fillPattern({send.place(bytes), bytes}, slot, self_);
  send.post(fingerprintOf(slot, self_), bytes);
}

void SelfTest::check(uint64_t slot) const {
  const Said said = connection_.recv.said();
  const uint32_t bytes = sizeOfSlot(slot);
  if (said.bytes != bytes || said.fingerprint != fingerprintOf(slot, peer_))
    throw Error(ErrorCode::kRemote, fmt::format("self-test: slot {} came with a wrong header ({} bytes instead of {})",
                                                slot, said.bytes, bytes));
  std::vector<std::byte> expected(bytes);
  fillPattern(expected, slot, peer_);
  if (!std::equal(expected.begin(), expected.end(), connection_.recv.payload(bytes)))
    throw Error(ErrorCode::kRemote,
                fmt::format("self-test: the {} bytes of slot {} did not arrive as they were sent", bytes, slot));
}

std::string SelfTest::state() const {
  return fmt::format("in the self-test: {} of {} slots sent, {} received", connection_.send.posted, slots_,
                     connection_.recv.received);
}

}  // namespace tutti::link
