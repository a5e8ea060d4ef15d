// What a thread that has called shrink() waits for.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "shrink/shrink_home.h"

namespace tutti::control {

class ShrinkVerdict {
 public:
  void succeed(std::shared_ptr<NewPlane> joined) {
    std::lock_guard lock(mutex_);
    joined_ = std::move(joined);
    changed_.notify_all();
  }
  void fail(ErrorCode code, std::string_view text) noexcept {
    std::lock_guard lock(mutex_);
    if (!joined_) setText(refusal_.emplace(Refusal{code, {}}).text, text);
    changed_.notify_all();
  }
  // Blocks. Throws the refusal.
  std::shared_ptr<NewPlane> await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return joined_ || refusal_; });
    if (!joined_) throw Error(refusal_->code, refusal_->text);
    return std::move(joined_);
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::shared_ptr<NewPlane> joined_;
  std::optional<Refusal> refusal_;
};

}  // namespace tutti::control
