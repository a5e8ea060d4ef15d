#include "transports/verbs/path.h"

#include <utility>

namespace tutti::verbs {

bool Path::live(uint32_t life) noexcept {
  const uint32_t before = std::exchange(life_, life);
  expected_ = 0;
  begun_ = done_ = 0;
  if (queue_->connect(peer_, life) && expectMore()) return true;
  expected_ = 0;
  life_ = before;  // nothing of the new one counts
  return false;
}

bool Path::write(Write write) noexcept {
  write.signalled = write.note.has_value();
  if (!queue_->write(write)) return false;
  ++begun_;
  return true;
}

void Path::account(const Completion& completion) noexcept {
  if (completion.receive)
    --expected_;
  else if (completion.what == Completion::What::kWritten)
    done_ = completion.write;
}

bool Path::expectMore() noexcept {
  if (expected_ > mostNotes_ / 2) return true;  // several in one call
  const int wanted = mostNotes_ - expected_, granted = queue_->expectNotes(wanted);
  expected_ += granted;
  return granted == wanted;
}

}  // namespace tutti::verbs
