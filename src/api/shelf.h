// The shells behind handles. One whose thing has ended is remembered for as long as a thousand others take to end, so
// that using it is an error with a text and not a crash; then it is made anew for another thing, so that a process
// which makes and ends things for ever does not grow.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::api {

template <class Shell>
class Shelf {
 public:
  // A fresh shell. It is the shelf's; whoever takes it puts it back at most once.
  Shell* take() {
    std::lock_guard lock(mutex_);
    if (ended_.size() <= kRemembered) return all_.emplace_back(std::make_unique<Shell>()).get();
    Shell* const oldest = ended_.front();
    ended_.pop_front();
    std::destroy_at(oldest);
    return std::construct_at(oldest);
  }

  void putBack(Shell* ended) {
    std::lock_guard lock(mutex_);
    ended_.push_back(ended);
  }

 private:
  static constexpr size_t kRemembered = 1024;
  std::mutex mutex_;
  std::deque<Shell*> ended_;
  std::vector<std::unique_ptr<Shell>> all_;
};

}  // namespace tutti::api
