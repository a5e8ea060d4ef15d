// RDMA devices in memory, which do all that real ones may do: messages of one queue pair go in their order, others in
// any; what is sent is read when it leaves, not when it is posted, and may be read again until that is acknowledged;
// what is under way arrives, also from a sender that has stopped, as long as the receiver has not; what has arrived may
// still be reported as broken.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "transports/verbs/queue.h"

namespace tutti::verbs {

struct FakeMessage {
  Write write;
  uint32_t life = 0;
  uint64_t number = 0;  // of the write in its life
  std::vector<std::byte> bytes;
};

// A device that registers memory: not for ever, and only so much of it.
class FakeDevice final : public Registrar {
 public:
  FakeDevice(std::string name, size_t most, std::mt19937_64& random, const double& refused)
      : name_(std::move(name)), most_(most), random_(random), refused_(refused) {}
  ~FakeDevice() override;
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  std::string name() const override { return name_; }
  Made add(const void* begin, size_t bytes) noexcept override;
  void remove(void* handle) noexcept override;
  // Whether it may read there.
  bool knows(uint32_t key, const void* begin, size_t bytes) const;
  size_t count() const { return all_.size(); }

 private:
  struct Range {
    const std::byte* begin;
    size_t bytes;
  };
  std::string name_;
  size_t most_, bytes_ = 0;
  std::mt19937_64& random_;
  const double& refused_;
  uint32_t last_ = 0;
  std::map<uint32_t, Range> all_;

 public:
  std::optional<MemoryCache> cache{*this};
};

// Slots of one end that lie in a GPU: what arrives there is seen after a flush only.
class FakeGpu {
 public:
  explicit FakeGpu(size_t bytes) : seen_(bytes) {}
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  std::byte* data() { return seen_.data(); }
  size_t bytes() const { return seen_.size(); }
  void write(size_t to, std::vector<std::byte> what) { unseen_.emplace_back(to, std::move(what)); }
  void flush();
  tuttiTransportGpuSlots describe();

 private:
  std::vector<std::byte> seen_;
  std::vector<std::pair<size_t, std::vector<std::byte>>> unseen_;
};

// How likely what goes wrong is, of 1.
struct FakeFaults {
  double refusedWrite = 0, refusedNotes = 0, refusedLife = 0, failedPoll = 0, inactivePort = 0, refusedMemory = 0;
};

class FakeQueue final : public Queue {
 public:
  FakeQueue(std::string name, std::byte* memory, size_t bytes, std::mt19937_64& random, FakeFaults& faults,
            std::shared_ptr<FakeDevice> device, FakeGpu* gpu)
      : name_(std::move(name)),
        memory_(memory),
        bytes_(bytes),
        gpu_(gpu),
        random_(random),
        faults_(faults),
        device_(std::move(device)) {}

  std::string name() const override { return name_; }
  QueueAddress address() const override { return {}; }
  bool connect(const QueueAddress& peer, uint32_t life) noexcept override;
  int expectNotes(int count) noexcept override;
  bool write(const Write& write) noexcept override;
  int poll(std::span<Completion> completions) noexcept override;
  void stop() noexcept override;
  std::shared_ptr<MemoryCache> memory() const override { return {device_, &*device_->cache}; }
  bool portIsActive() noexcept override { return !happens(faults_.inactivePort); }
  int pollFd() const noexcept override { return -1; }
  bool arm() noexcept override { return completions_.empty(); }
  std::string textOf(int status) const override { return "status " + std::to_string(status); }

 private:
  friend class FakePath;
  bool happens(double part) { return part > 0 && std::uniform_real_distribution<>(0, 1)(random_) < part; }
  void report(const Completion& completion) { completions_.push_back(completion); }

  std::string name_;
  std::byte* memory_;
  size_t bytes_;
  FakeGpu* gpu_;  // null: the slots are in the memory
  std::mt19937_64& random_;
  FakeFaults& faults_;
  std::shared_ptr<FakeDevice> device_;
  bool alive_ = false;
  uint32_t life_ = 0;
  int expected_ = 0;
  uint64_t begun_ = 0;
  std::deque<FakeMessage> posted_;
  std::deque<Completion> completions_;
};

// Two queues that face each other, and what is between them. Steps are what the network does next, if it can.
class FakePath {
 public:
  FakePath(FakeQueue& one, FakeQueue& other) : ends_{&one, &other} {}
  // From end `from`, 0 or 1.
  bool leave(size_t from);
  bool arrive(size_t from);
  bool acknowledge(size_t from);
  // The end finds its peer unreachable: what is under way is lost, or only its acknowledgement is.
  void breakAt(size_t end, bool loses);

 private:
  FakeQueue* ends_[2];
  std::deque<FakeMessage> wire_[2], arrived_[2];  // by who sent them
};

}  // namespace tutti::verbs
