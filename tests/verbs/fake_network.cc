#include "verbs/fake_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::verbs {
namespace {

constexpr int kUnreachable = 12, kFlushed = 5;

}  // namespace

FakeDevice::~FakeDevice() {
  cache.reset();
  EXPECT_EQ(all_.size(), 0u) << "left registered with " << name_;
}

Registrar::Made FakeDevice::add(const void* begin, size_t bytes) noexcept {
  const bool refuses = refused_ > 0 && std::uniform_real_distribution<>(0, 1)(random_) < refused_;
  if (refuses || bytes_ + bytes > most_) {
    errno = refuses ? EFAULT : ENOMEM;
    return {};
  }
  bytes_ += bytes;
  all_[++last_] = {static_cast<const std::byte*>(begin), bytes};
  return {reinterpret_cast<void*>(uintptr_t{last_}), last_};
}

void FakeDevice::remove(void* handle) noexcept {
  const auto found = all_.find(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle)));
  EXPECT_NE(found, all_.end());
  bytes_ -= found->second.bytes;
  all_.erase(found);
}

bool FakeDevice::knows(uint32_t key, const void* begin, size_t bytes) const {
  const auto found = all_.find(key);
  const auto* const at = static_cast<const std::byte*>(begin);
  return found != all_.end() && at >= found->second.begin && at + bytes <= found->second.begin + found->second.bytes;
}

void FakeGpu::flush() {
  for (const auto& [to, what] : unseen_) std::ranges::copy(what, seen_.begin() + static_cast<std::ptrdiff_t>(to));
  unseen_.clear();
}

tuttiTransportGpuSlots FakeGpu::describe() {
  const auto flushOf = [](void* gpu) noexcept { return static_cast<FakeGpu*>(gpu)->flush(), 0; };
  return {data(), bytes(), -1, 0, flushOf, this};
}

// Some of what an earlier life had to report is still there: whoever reads it knows it by its life.
bool FakeQueue::connect(const QueueAddress&, uint32_t life) noexcept {
  if (happens(faults_.refusedLife)) {
    errno = EAGAIN;
    return false;
  }
  if (happens(0.5)) completions_.clear();
  alive_ = true;
  life_ = life;
  expected_ = 0;
  begun_ = 0;
  posted_.clear();
  return true;
}

int FakeQueue::expectNotes(int count) noexcept {
  int granted = count;
  if (happens(faults_.refusedNotes)) {
    granted = std::uniform_int_distribution<int>(0, count - 1)(random_);
    errno = ENOMEM;
  }
  expected_ += granted;
  return granted;
}

bool FakeQueue::write(const Write& write) noexcept {
  if (happens(faults_.refusedWrite)) {
    errno = EIO;
    return false;
  }
  FakeMessage message{write, life_, ++begun_, {}};
  EXPECT_FALSE(write.copied && write.inSlots) << "the processor would read a GPU's memory";
  if (write.copied && write.bytes > 0) {
    const auto* const from = static_cast<const std::byte*>(write.from);
    message.bytes.assign(from, from + write.bytes);
  }
  if (alive_)
    posted_.push_back(std::move(message));
  else
    report({.what = Completion::What::kBroken, .life = life_, .status = kFlushed});
  return true;
}

int FakeQueue::poll(std::span<Completion> completions) noexcept {
  if (happens(faults_.failedPoll)) {
    errno = EIO;
    return -1;
  }
  if (happens(0.7)) return 0;
  const size_t most = std::uniform_int_distribution<size_t>(0, completions.size())(random_);
  const size_t count = std::min(most, completions_.size());
  std::copy_n(completions_.begin(), count, completions.begin());
  completions_.erase(completions_.begin(), completions_.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<int>(count);
}

// All that is posted is reported as broken, whether it has arrived or not.
void FakeQueue::stop() noexcept {
  if (!alive_) return;
  alive_ = false;
  const size_t sends = posted_.size();
  posted_.clear();
  for (size_t i = 0; i < sends; ++i) report({.what = Completion::What::kBroken, .life = life_, .status = kFlushed});
  for (; expected_ > 0; --expected_)
    report({.what = Completion::What::kBroken, .receive = true, .life = life_, .status = kFlushed});
}

bool FakePath::leave(size_t from) {
  FakeQueue& sender = *ends_[from];
  if (!sender.alive_ || sender.posted_.empty()) return false;
  FakeMessage message = std::move(sender.posted_.front());
  sender.posted_.pop_front();
  const Write& write = message.write;
  if (!write.copied && write.bytes > 0) {
    const auto* const place = static_cast<const std::byte*>(write.from);
    const std::byte* const begin = write.inSlots ? sender.gpu_->data() : sender.memory_;
    const size_t bytes = write.inSlots ? sender.gpu_->bytes() : sender.bytes_;
    const bool isOwn = place >= begin && place + write.bytes <= begin + bytes;
    EXPECT_TRUE(write.key ? sender.device_->knows(*write.key, place, write.bytes) : isOwn);
    message.bytes.assign(place, place + write.bytes);
  }
  wire_[from].push_back(std::move(message));
  return true;
}

bool FakePath::arrive(size_t from) {
  if (wire_[from].empty()) return false;
  FakeQueue& receiver = *ends_[1 - from];
  FakeMessage& message = wire_[from].front();
  if (!receiver.alive_ || receiver.life_ != message.life) {
    const bool isCurrent = ends_[from]->life_ == message.life;
    wire_[from].pop_front();
    if (isCurrent) breakAt(from, true);
    return true;
  }
  const Write& write = message.write;
  if (write.note && receiver.expected_ == 0) return false;  // it is tried again
  EXPECT_LE(write.to + write.bytes, write.inSlots ? receiver.gpu_->bytes() : receiver.bytes_);
  if (write.inSlots)
    receiver.gpu_->write(write.to, message.bytes);
  else if (write.bytes > 0)
    std::memcpy(receiver.memory_ + write.to, message.bytes.data(), write.bytes);
  if (write.note) {
    --receiver.expected_;
    receiver.report({.what = Completion::What::kNote, .receive = true, .life = receiver.life_, .note = *write.note});
  }
  arrived_[from].push_back(std::move(message));
  wire_[from].pop_front();
  return true;
}

bool FakePath::acknowledge(size_t from) {
  if (arrived_[from].empty()) return false;
  const FakeMessage message = std::move(arrived_[from].front());
  arrived_[from].pop_front();
  FakeQueue& sender = *ends_[from];
  const bool isCurrent = sender.alive_ && sender.life_ == message.life;
  const Write& write = message.write;
  if (isCurrent && write.key && !write.copied) {  // it may have been read again until now
    EXPECT_TRUE(sender.device_->knows(*write.key, write.from, write.bytes));
  }
  if (isCurrent && write.signalled)
    sender.report({.what = Completion::What::kWritten, .life = message.life, .write = message.number});
  return true;
}

void FakePath::breakAt(size_t end, bool loses) {
  if (loses) wire_[end].clear();
  arrived_[end].clear();
  FakeQueue& queue = *ends_[end];
  if (!queue.alive_) return;
  queue.report({.what = Completion::What::kBroken, .life = queue.life_, .status = kUnreachable});
  queue.stop();
}

}  // namespace tutti::verbs
