#include "support/traffic_generator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "support/patience.h"

namespace tutti::test {
namespace {

uint64_t mix(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t wordAt(int from, uint64_t slot, uint32_t index) noexcept {
  return mix(slot * 1000003 + static_cast<uint64_t>(from)) + index * 0x9e3779b97f4a7c15u;
}

void write(std::byte* to, uint32_t bytes, int from, uint64_t slot) noexcept {
  for (uint32_t at = 0, index = 0; at < bytes; at += 8, ++index) {
    const uint64_t word = wordAt(from, slot, index);
    std::memcpy(to + at, &word, std::min(8u, bytes - at));
  }
}

bool matches(const std::byte* data, uint32_t bytes, int from, uint64_t slot) noexcept {
  for (uint32_t at = 0, index = 0; at < bytes; at += 8, ++index) {
    const uint64_t word = wordAt(from, slot, index);
    if (std::memcmp(data + at, &word, std::min(8u, bytes - at)) != 0) return false;
  }
  return true;
}

link::Fingerprint fingerprint(int from, uint64_t slot) noexcept {
  const uint64_t bits = mix(slot + static_cast<uint64_t>(from) * 77);
  return {.count = bits,
          .operation = static_cast<uint32_t>(slot),
          .root = static_cast<uint16_t>(bits >> 3),
          .kindAndType = static_cast<uint8_t>(bits >> 7),
          .op = static_cast<uint8_t>(from)};
}

}  // namespace

TrafficGenerator::TrafficGenerator(link::Connection& connection, int self, SizeOfSlot sizes)
    : connection_(connection),
      self_(self),
      peer_(connection.recv.peer),
      sizes_(std::move(sizes)),
      sendBase_(connection.send.posted),
      receiveBase_(connection.recv.received) {}

void TrafficGenerator::drive() {
  link::Driver* driver = connection_.send.driver;
  if (driver != nullptr && driver->progress() == link::Progress::kFailed && failure_.empty())
    failure_ = driver->error();
}

bool TrafficGenerator::sendOne() {
  link::SendEnd& send = connection_.send;
  const uint64_t slot = send.posted - sendBase_;
  const uint32_t bytes = sizes_(self_, slot);
  if (!send.hasRoomFor(bytes)) return false;
  write(send.place(bytes), bytes, self_, slot);
  send.post(fingerprint(self_, slot), bytes);
  return true;
}

bool TrafficGenerator::receiveOne() {
  if (!connection_.recv.ready()) return false;
  check();
  connection_.recv.release();
  return true;
}

void TrafficGenerator::check() {
  const link::SlotHeader& header = connection_.recv.header();
  const uint64_t slot = connection_.recv.received - receiveBase_;
  if (!failure_.empty()) return;
  if (header.bytes != sizes_(peer_, slot))
    failure_ = fmt::format("slot {} has {} bytes instead of {}", slot, header.bytes, sizes_(peer_, slot));
  else if (header.fingerprint != fingerprint(peer_, slot))
    failure_ = fmt::format("slot {} has another fingerprint", slot);
  else if (!matches(connection_.recv.payload(header.bytes), header.bytes, peer_, slot))
    failure_ = fmt::format("the {} bytes of slot {} are not what was sent", header.bytes, slot);
}

void TrafficGenerator::exchange(uint64_t sends, uint64_t receives) {
  auto deadline = Deadline::in(longWait());
  const auto flushed = [&] { return connection_.send.driver == nullptr || !connection_.send.driver->sending(); };
  while (failure_.empty() && (connection_.send.posted - sendBase_ < sends ||
                              connection_.recv.received - receiveBase_ < receives || !flushed())) {
    drive();
    bool moved = false;
    while (connection_.send.posted - sendBase_ < sends && sendOne()) moved = true;
    while (connection_.recv.received - receiveBase_ < receives && receiveOne()) moved = true;
    if (moved) {
      deadline = Deadline::in(longWait());
      continue;
    }
    if (deadline.passed())
      failure_ = fmt::format("stuck: {} of {} sent, {} of {} received", connection_.send.posted - sendBase_, sends,
                             connection_.recv.received - receiveBase_, receives);
    std::this_thread::yield();
  }
}

SizeOfSlot mixedSizes(uint32_t slotBytes, uint64_t seed) {
  return [=](int from, uint64_t slot) -> uint32_t {
    const uint64_t bits = mix(seed + slot * 31 + static_cast<uint64_t>(from));
    const uint32_t choices[] = {0,
                                1,
                                link::kInlineBytes,
                                link::kInlineBytes + 1,
                                slotBytes,
                                slotBytes - 1,
                                static_cast<uint32_t>((bits >> 8) % (slotBytes + 1)),
                                static_cast<uint32_t>((bits >> 8) % 100)};
    return std::min(slotBytes, choices[bits % std::size(choices)]);
  };
}

void exchangeInThreads(ConnectionPair& ends, EdgePair& edges, uint64_t count, const SizeOfSlot& sizes) {
  std::array<std::string, 2> failures;
  const auto talk = [&](int side) {
    TrafficGenerator traffic(*ends[side], edges.edge(side).self, sizes);
    traffic.exchange(count, count);
    failures[side] = traffic.failure();
  };
  std::thread other(talk, 1);
  talk(0);
  other.join();
  EXPECT_EQ(failures[0], "");
  EXPECT_EQ(failures[1], "");
}

}  // namespace tutti::test
