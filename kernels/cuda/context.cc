#include "kernels/cuda/context.h"

#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"

namespace tutti::cuda {

Context::Context(int ordinal) : ordinal_(ordinal) {
  check(statusOf(driver().deviceGet(&device_, ordinal)), ordinal, "looking for the GPU");
  check(statusOf(driver().retainPrimary(&context_, device_)), ordinal, "opening the GPU");
}

Context::~Context() { driver().releasePrimary(device_); }

OnDevice::OnDevice(const Context& context) {
  check(statusOf(driver().getCurrent(&before_)), context.ordinal(), "asking for the thread's device");
  if (before_ == context.get()) return;
  check(statusOf(driver().setCurrent(context.get())), context.ordinal(), "turning to the GPU");
  changed_ = true;
}

OnDevice::~OnDevice() {
  if (changed_) driver().setCurrent(before_);
}

RelaxedCapture::RelaxedCapture(int ordinal) {
  check(cudaThreadExchangeStreamCaptureMode(&mode_), ordinal, "stepping beside a capture");
}

RelaxedCapture::~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

}  // namespace tutti::cuda
