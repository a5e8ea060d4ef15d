// One of the ways of a link: a queue pair with what is under way on it, from life to life.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transports/verbs/note.h"
#include "transports/verbs/queue.h"

namespace tutti::verbs {

using TimePoint = std::chrono::steady_clock::time_point;

class Path {
 public:
  enum class State : uint8_t {
    kUp,
    kStopping,  // broken: what had arrived is still being reported, or the peer has not said what it has
    kStopped,   // both ends know what has arrived of what went this way
    kReviving,  // this end lives again; a note has yet to cross
  };

  // `mostNotes` may be under way towards this end, `mostWrites` from it.
  Path(std::unique_ptr<Queue> queue, const QueueAddress& peer, int mostNotes, int mostWrites)
      : queue_(std::move(queue)), peer_(peer), mostNotes_(mostNotes), mostWrites_(mostWrites) {}

  Queue& queue() noexcept { return *queue_; }
  const Queue& queue() const noexcept { return *queue_; }
  bool isUp() const noexcept { return state == State::kUp; }
  // False, with errno, when the system refuses.
  bool live(uint32_t life) noexcept;
  uint32_t life() const noexcept { return life_; }

  bool hasRoomFor(uint64_t writes) const noexcept {
    return begun_ - done_ + writes <= static_cast<uint64_t>(mostWrites_);
  }
  bool isQuiet() const noexcept { return begun_ == done_; }
  // False, with errno, when the system refuses. Needs room.
  bool write(Write write) noexcept;
  bool write(const Note& note) noexcept { return write(Write{.note = note.bits()}); }
  uint64_t begun() const noexcept { return begun_; }  // writes of this life
  uint64_t done() const noexcept { return done_; }
  // Counts what a completion of this life is about.
  void account(const Completion& completion) noexcept;
  // Lets as many notes arrive as have come. False, with errno, when the system refuses.
  bool expectMore() noexcept;
  // Whether all that was expected has come or is broken.
  bool isDrained() const noexcept { return expected_ == 0; }

  // A part of a slot, and the write of this life that its note goes with.
  struct Flight {
    uint64_t write, slot;
    uint8_t part;
  };

  // What the link makes of it.
  std::deque<Flight> flights;  // until they are done, or the path is broken
  State state = State::kUp;
  std::string why;                    // it is not up
  TimePoint since{};                  // when it was stopped, or looked at since
  std::chrono::milliseconds pause{};  // before the next try to revive it
  bool isAsked = false;               // by the peer, for what has come this way, and has not answered
  uint8_t question = 0;               // the peer's number of that
  bool isAsking = false;              // the same of the peer, which has not answered
  uint8_t ownQuestion = 0;
  std::vector<uint8_t> have;  // what it has said so far: a mask of parts for each place of the FIFO

 private:
  std::unique_ptr<Queue> queue_;
  QueueAddress peer_;
  int mostNotes_, mostWrites_;
  uint32_t life_ = 0;
  int expected_ = 0;
  uint64_t begun_ = 0, done_ = 0;  // writes of this life
};

}  // namespace tutti::verbs
