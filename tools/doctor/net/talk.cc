#include "doctor/net/talk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"

namespace tutti::doctor::net {
namespace {

using Clock = std::chrono::steady_clock;

// What a slot is for; it stands in the slot's fingerprint.
enum class Say : uint32_t { kPing = 1, kPong, kPart, kBurstEnds, kBurstCame, kResult };

double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Talk {
 public:
  Talk(link::Connection& connection, const Terms& terms)
      : connection_(connection), terms_(terms), buffer_(connection.send.fifo.slotBytes, std::byte{0x5a}) {}

  double pings() {
    constexpr int kWarm = 20, kMost = 500;
    const auto begin = Clock::now();
    std::vector<double> times;
    for (int i = 0; i < kMost && (i <= kWarm || secondsSince(begin) < budget()); ++i) {
      const auto sent = Clock::now();
      send(Say::kPing);
      expect(Say::kPong);
      if (i >= kWarm) times.push_back(secondsSince(sent));
    }
    const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle * 1e6 / 2;
  }

  // Bursts, each of twice as many slots, until one takes long enough to be told. Then the other end hears the result.
  double sendBursts() {
    constexpr double kGiga = 1e9;
    constexpr uint64_t kMost = 1 << 14;  // slots
    double result = 0;
    for (uint64_t slots = 1;; slots *= 2) {
      const auto begin = Clock::now();
      for (uint64_t i = 0; i < slots; ++i) send(Say::kPart);
      send(Say::kBurstEnds);
      expect(Say::kBurstCame);
      const double took = std::max(secondsSince(begin), 1e-9);  // a clock's grain
      result = double(slots) * double(buffer_.size()) / took / kGiga;
      if (took >= budget() / 2 || slots >= kMost) break;
    }
    send(Say::kResult, result);
    flush();
    return result;
  }

  // Answers until the other end has its result, which it returns.
  double answer() {
    for (;;) {
      const auto [say, value] = receive();
      if (say == Say::kPing) send(Say::kPong);
      if (say == Say::kBurstEnds) send(Say::kBurstCame);
      if (say != Say::kResult) continue;
      if (!std::isfinite(value) || value < 0) refuse();
      return value;
    }
  }

 private:
  struct Heard {
    Say say;
    double value;
  };

  double budget() const { return std::chrono::duration<double>(terms_.each).count(); }

  void send(Say say, double value = 0) {
    link::SendEnd& end = connection_.send;
    while (!end.hasRoom()) step();
    const bool isPart = say == Say::kPart;
    const size_t bytes = isPart ? buffer_.size() : sizeof value;
    std::memcpy(end.place(bytes), isPart ? buffer_.data() : reinterpret_cast<const std::byte*>(&value), bytes);
    end.post({.operation = static_cast<uint32_t>(say)}, static_cast<uint32_t>(bytes));
    moved();
  }

  Heard receive() {
    link::RecvEnd& end = connection_.recv;
    while (!end.ready()) step();
    const link::Said said = end.said();
    const size_t bytes = std::min<size_t>(said.bytes, buffer_.size());
    std::memcpy(buffer_.data(), end.payload(bytes), bytes);  // as whoever uses what has come
    end.release();
    moved();
    Heard heard{static_cast<Say>(said.fingerprint.operation), 0};
    if (bytes == sizeof heard.value) std::memcpy(&heard.value, buffer_.data(), bytes);
    return heard;
  }

  void expect(Say wanted) {
    if (receive().say != wanted) refuse();
  }

  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::kRemote,
                "the other rank says something else than was asked: do all ranks run the same tutti?");
  }

  void flush() {
    while (connection_.send.driver != nullptr && connection_.send.driver->sending()) step();
  }

  void moved() { silence_ = Deadline::in(terms_.patience); }

  // Looks once more; what has waited in vain for long throws.
  void step() {
    link::Driver* const driver = connection_.send.driver;
    const link::Progress progress = driver != nullptr ? driver->drive() : link::Progress::kIdle;
    if (progress == link::Progress::kFailed) throw Error(ErrorCode::kRemote, link::whyFailed(*driver));
    if (progress == link::Progress::kAdvanced) return moved();
    if (terms_.over != nullptr && terms_.over->load()) throw Error(ErrorCode::kRemote, "a rank is gone");
    if (silence_.passed())
      throw Error(ErrorCode::kTimeout,
                  fmt::format("it was connected, and then nothing came for {} ms: long packets may be lost on the way "
                              "(compare the MTUs), or a cable was cut",
                              terms_.patience.count()));
    std::this_thread::yield();
  }

  link::Connection& connection_;
  const Terms& terms_;
  std::vector<std::byte> buffer_;
  Deadline silence_ = Deadline::in(terms_.patience);
};

}  // namespace

Measured talkAsLower(link::Connection& connection, const Terms& terms) {
  Talk talk(connection, terms);
  Measured measured;
  measured.latencyUs = talk.pings();
  measured.there = talk.sendBursts();
  measured.back = talk.answer();
  return measured;
}

Measured talkAsHigher(link::Connection& connection, const Terms& terms) {
  Talk talk(connection, terms);
  Measured measured;
  measured.there = talk.answer();
  measured.back = talk.sendBursts();
  return measured;
}

}  // namespace tutti::doctor::net
