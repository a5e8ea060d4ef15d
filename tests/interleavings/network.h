// The links of a job whose ranks all live on one thread: mapped memory, or a stream that holds only so many bytes and
// moves as few of them at a time as chance wants. The stream is to a lane what a TCP socket is: what was posted moves
// only when one end or the other is driven.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include "link/link.h"

namespace tutti::interleavings {

// Where all choices of a schedule come from.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  size_t below(size_t limit) { return random_() % limit; }
  bool percent(unsigned share) { return below(100) < share; }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  std::mt19937_64 random_;
};

// How streams behave right now.
struct Weather {
  Chance* chance;
  bool fair = false;  // whatever can move moves
  size_t allowance() const;
};

// One direction of a stream: bytes between the two ends, of frames that each carry a slot.
struct Pipe {
  struct Frame {
    uint64_t end;  // in bytes of the pipe
    link::Fingerprint fingerprint;
    std::vector<std::byte> payload;
  };
  size_t capacity = 0;
  uint64_t written = 0, read = 0;
  std::deque<Frame> frames;  // those that have begun to be written and are not taken
};

class StreamDriver final : public link::Driver {
 public:
  StreamDriver(const Weather& weather, Pipe& out, Pipe& in) : weather_(weather), out_(out), in_(in) {}
  void serve(const link::Fifo& send, const link::Fifo& recv) noexcept {
    send_ = send;
    recv_ = recv;
  }
  link::Progress progress() noexcept override;
  link::Progress send() noexcept override;
  bool reachesBuffers() const noexcept override { return true; }
  bool sending() const noexcept override { return posted(); }
  Interest wanted() noexcept override { return {-1, 0}; }
  std::string error() const override { return ""; }

 private:
  static constexpr size_t kFrameBytes = 32;  // besides the payload
  bool posted() const noexcept;
  bool write();
  bool read();
  void deliver();

  const Weather& weather_;
  Pipe &out_, &in_;
  link::Fifo send_, recv_;
  uint64_t sent_ = 0, arrived_ = 0;
};

// The two ends of one edge. Of a rank's edge to itself both are one, as in comm::Links.
class Edge {
 public:
  enum class Kind : uint8_t { kMapped, kStream, kSelf };
  Edge(Kind kind, int low, int high, uint32_t slotBytes, uint32_t depth, const Weather& weather, size_t capacity);
  link::SendEnd& send(int rank) noexcept { return ends_[rank == low_ ? 0 : 1].send; }
  link::RecvEnd& recv(int rank) noexcept { return ends_[rank == low_ ? 0 : 1].recv; }
  uint64_t bytesMoved() const noexcept {
    return pipes_[0].written + pipes_[0].read + pipes_[1].written + pipes_[1].read;
  }

 private:
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  struct End {
    link::SendEnd send;
    link::RecvEnd recv;
    std::unique_ptr<StreamDriver> driver;
  };
  link::Fifo newFifo(uint32_t slotBytes, uint32_t depth);

  int low_;
  std::vector<std::vector<Line>> memory_;
  Pipe pipes_[2];  // from low to high, from high to low
  End ends_[2];
};

}  // namespace tutti::interleavings
