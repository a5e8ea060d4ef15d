#include "device/network_slots.h"

#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/device.h"

namespace tutti::device {
namespace {

// What links have had and do not need any more, until the communicator ends: freeing a GPU's memory waits for all that
// runs there, and a link that is not to be must not wait for a kernel that waits for a peer.
class Kept {
 public:
  std::unique_ptr<link::GpuSlots> take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto& one : free_)
      if (one->bytes() >= bytes) {
        std::swap(one, free_.back());
        auto taken = std::move(free_.back());
        free_.pop_back();
        return taken;
      }
    return nullptr;
  }
  void give(std::unique_ptr<link::GpuSlots> slots) noexcept try {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(slots));
  } catch (const std::exception&) {  // no memory to keep it: it goes now
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<link::GpuSlots>> free_;
};

class LinkSlots final : public link::GpuSlots {
 public:
  LinkSlots(std::shared_ptr<Kept> kept, std::unique_ptr<link::GpuSlots> slots)
      : kept_(std::move(kept)), slots_(std::move(slots)) {}
  LinkSlots(const LinkSlots&) = delete;
  LinkSlots& operator=(const LinkSlots&) = delete;
  ~LinkSlots() override { kept_->give(std::move(slots_)); }

  std::byte* data() const noexcept override { return slots_->data(); }
  size_t bytes() const noexcept override { return slots_->bytes(); }
  int dmabuf() const noexcept override { return slots_->dmabuf(); }
  uint64_t dmabufOffset() const noexcept override { return slots_->dmabufOffset(); }
  bool needsFlush() const noexcept override { return slots_->needsFlush(); }
  bool flush() noexcept override { return slots_->flush(); }
  void write(std::byte* to, const void* from, size_t bytes) override { slots_->write(to, from, bytes); }
  void read(void* to, const std::byte* from, size_t bytes) override { slots_->read(to, from, bytes); }

 private:
  std::shared_ptr<Kept> kept_;
  std::unique_ptr<link::GpuSlots> slots_;
};

class SlotsOfDevice final : public link::GpuSlotSource {
 public:
  explicit SlotsOfDevice(int ordinal) : ordinal_(ordinal) {}
  std::string lack() const override try { return openDevice(ordinal_)->lackForNetwork(); } catch (const Error& error) {
    return error.what();
  }
  std::unique_ptr<link::GpuSlots> make(size_t bytes) const override {
    auto slots = kept_->take(bytes);
    if (!slots) slots = openDevice(ordinal_)->allocateForNetwork(bytes);
    return std::make_unique<LinkSlots>(kept_, std::move(slots));
  }

 private:
  int ordinal_;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace

std::shared_ptr<const link::GpuSlotSource> slotSourceOf(int ordinal) {
  return std::make_shared<const SlotsOfDevice>(ordinal);
}

}  // namespace tutti::device
