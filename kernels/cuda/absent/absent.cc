// The port to a GPU in a build without CUDA: there is none, and this says why.
#include <fmt/format.h>

#include "base/error.h"
#include "device/device.h"

namespace tutti::device {
namespace {

constexpr const char* kWhy =
    "this libtutti was built without CUDA (configure it with -DTUTTI_CUDA=ON where nvcc is installed)";

}  // namespace

int deviceCount(std::string& why) noexcept {
  setText(why, kWhy);
  return 0;
}

std::shared_ptr<Device> openDevice(int ordinal) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no GPU {}: {}", ordinal, kWhy));
}

int currentDevice() noexcept { return -1; }

}  // namespace tutti::device
