#include "device/network_slots.h"

#include "base/error.h"
#include "device/device.h"

namespace tutti::device {
namespace {

class SlotsOfDevice final : public link::GpuSlotSource {
 public:
  explicit SlotsOfDevice(int ordinal) : ordinal_(ordinal) {}
  std::string lack() const override try { return openDevice(ordinal_)->lackForNetwork(); } catch (const Error& error) {
    return error.what();
  }
  std::unique_ptr<link::GpuSlots> make(size_t bytes) const override {
    return openDevice(ordinal_)->allocateForNetwork(bytes);
  }

 private:
  int ordinal_;
};

}  // namespace

std::shared_ptr<const link::GpuSlotSource> slotSourceOf(int ordinal) {
  return std::make_shared<const SlotsOfDevice>(ordinal);
}

}  // namespace tutti::device
