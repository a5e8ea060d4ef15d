// Whoever runs callbacks of a future may hold up others: the callbacks of the next operation, or the next message. A
// callback that begins an operation, or waits for one, may wait for just these; so then they go on without it.
#pragma once
#include <functional>
#include <utility>

namespace tutti_torch {

// Of the thread that made it, for as long as callbacks run there; these may have others run in their turn.
class Turn {
 public:
  // `pass` lets the others go on; it may be asked more than once.
  explicit Turn(std::function<void()> pass) : pass_(std::move(pass)), outer_(std::exchange(own, this)) {}
  ~Turn() { own = outer_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // The calling thread's, if it has one.
  static void passOn() {
    if (own != nullptr) own->pass_();
  }

 private:
  static inline thread_local Turn* own = nullptr;
  const std::function<void()> pass_;
  Turn* const outer_;
};

}  // namespace tutti_torch
