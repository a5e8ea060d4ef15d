#include "emulation/runtime/device.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "emulation/control.h"

namespace tutti::emulation {
namespace {

constexpr int kMaxDevices = 16;

std::atomic<int> count{1};
constexpr int kNone = -1;
thread_local int current = kNone;

// All of them, whatever the count: a device that is taken away may still have work.
std::array<std::unique_ptr<Device>, kMaxDevices>& devices() {
  static auto* const all = [] {
    auto* made = new std::array<std::unique_ptr<Device>, kMaxDevices>;  // outlive every thread of the program
    for (int i = 0; i < kMaxDevices; ++i) (*made)[static_cast<size_t>(i)] = std::make_unique<Device>(i);
    return made;
  }();
  return *all;
}

}  // namespace

Device::Device(int number)
    : ordinal(number), bus(0x10u + static_cast<unsigned>(number)), legacy(std::make_shared<Stream>(*this, true)) {}

std::vector<std::shared_ptr<Stream>> Device::streams() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<Stream>> all;
  for (const auto& weak : streams_)
    if (auto stream = weak.lock()) all.push_back(std::move(stream));
  return all;
}

void Device::add(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex);
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
}

cudaError_t Device::synchronize() {
  for (const auto& stream : streams()) stream->waitFor(stream->enqueued());
  legacy->waitFor(legacy->enqueued());
  return failure.happened() ? cudaErrorLaunchFailure : cudaSuccess;
}

void Device::setMultiprocessors(unsigned number, unsigned blocks) {
  multiprocessors = number;
  blocksEach = blocks;
  residency.setLimit(number * blocks);
}

int deviceCount() noexcept { return count; }

Device* findDevice(int ordinal) noexcept {
  return ordinal >= 0 && ordinal < count ? devices()[static_cast<size_t>(ordinal)].get() : nullptr;
}

Device& currentDevice() noexcept { return *devices()[static_cast<size_t>(std::max(current, 0))]; }

void setCurrentDevice(int ordinal) noexcept { current = ordinal; }

bool hasCurrentDevice() noexcept { return current != kNone; }

void forgetCurrentDevice() noexcept { current = kNone; }

// --- control.h ---

void setDeviceCount(int number) { count = std::clamp(number, 0, kMaxDevices); }

void setBusIds(const std::vector<std::string>& ids) {
  for (size_t i = 0; i < ids.size() && i < kMaxDevices; ++i) {
    Device& device = *devices()[i];
    std::sscanf(ids[i].c_str(), "%x:%x:%x", &device.domain, &device.bus, &device.slot);
  }
}

void setStreamsWait(bool can) {
  for (auto& device : devices()) device->streamsWait = can;
}

void setMultiprocessors(unsigned number, unsigned blocks) {
  for (auto& device : devices()) device->setMultiprocessors(number, blocks);
}

std::string lastReport() {
  for (auto& device : devices())
    if (device->failure.happened()) return device->failure.text();
  return "";
}

void clearReports() {
  for (auto& device : devices()) {
    if (!device->failure.happened()) continue;
    (void)device->synchronize();
    device->failure.clear();
  }
}

}  // namespace tutti::emulation
