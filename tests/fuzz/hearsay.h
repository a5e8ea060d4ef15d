// A control plane that comes to nothing of itself: all that is heard over it is in the hands of the input. Rank 0 of
// a few. What a fuzzer wants heard it overrides.
#pragma once
#include <atomic>
#include <optional>
#include <vector>

#include "control/plane.h"
#include "fuzz/input.h"

namespace tutti::fuzz {

class Hearsay : public control::Plane {
 public:
  Hearsay(uint64_t id, int size) : id_(id), size_(size) {}

  bool awaitJoined(Deadline) override { return true; }
  void leave() noexcept override {}
  uint64_t id() const noexcept override { return id_; }
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return size_; }
  std::span<const std::byte> info(int) const override { return {}; }
  bool isHere(int) const override { return true; }
  std::vector<Bytes> allGather(std::span<const std::byte> mine, Deadline) override {
    return std::vector<Bytes>(static_cast<size_t>(size_), Bytes(mine.begin(), mine.end()));
  }
  void post(int, uint64_t, std::span<const std::byte>) override {}
  std::optional<Bytes> poll(int, uint64_t) override { return std::nullopt; }
  void requestStream(int, uint64_t, control::StreamKind) override {}
  std::optional<SecureSocket> pollStream(int, uint64_t) override { return std::nullopt; }
  void whenNews(std::function<void()>) override {}
  void ask(int, std::span<const std::byte>) override {}
  std::optional<control::Answer> lastAnswer(int) const override { return std::nullopt; }
  std::vector<int> wayTo(int) const override { return {}; }
  const std::atomic<bool>& failed() const noexcept override { return failed_; }
  std::optional<control::Failure> failure() const override { return std::nullopt; }
  void fail(const control::Failure&) noexcept override {}
  std::shared_ptr<control::Plane> shrink(const control::JoinRequest&, std::span<const int>,
                                         const std::function<bool()>&) override {
    return nullptr;
  }
  control::ChildRoot openChildRoot(const Network&, Deadline, std::span<const int>) override { return {}; }
  control::UniqueId childId(std::span<const std::byte>, int, size_t) const override { return {}; }
  Bytes sealId(const control::UniqueId&) const override { return {}; }
  control::UniqueId openId(std::span<const std::byte>, int) const override { return {}; }

 private:
  uint64_t id_;
  int size_;
  std::atomic<bool> failed_{false};
};

}  // namespace tutti::fuzz
