// What a thread that has called shrink() waits for.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "wire/messages.h"

namespace tutti::control {

class Member;

struct ShrinkResult {
  std::shared_ptr<Member> member;  // joined
  std::vector<int> oldRanks;
};

class ShrinkVerdict {
 public:
  void succeed(ShrinkResult result) {
    std::lock_guard lock(mutex_);
    result_ = std::move(result);
    changed_.notify_all();
  }
  void fail(ErrorCode code, std::string_view text) noexcept {
    std::lock_guard lock(mutex_);
    if (!result_) setText(refusal_.emplace(Refusal{code, {}}).text, text);
    changed_.notify_all();
  }
  // Blocks. Throws the refusal.
  ShrinkResult await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return result_ || refusal_; });
    if (!result_) throw Error(refusal_->code, refusal_->text);
    return std::move(*result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ShrinkResult> result_;
  std::optional<Refusal> refusal_;
};

}  // namespace tutti::control
