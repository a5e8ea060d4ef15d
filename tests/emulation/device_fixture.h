// What the tests of the port to a GPU share: a device of the emulation, streams, and memory to look at.
#pragma once
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"

namespace tutti::device::test {

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
  operator cudaStream_t() const noexcept { return stream_; }
  void finish() const { ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

 private:
  cudaStream_t stream_ = nullptr;
};

// Holds up a stream until it is opened.
class Gate {
 public:
  void close(cudaStream_t stream) {
    EXPECT_EQ(cudaLaunchHostFunc(
                  stream, [](void* gate) { static_cast<Gate*>(gate)->pass(); }, this),
              cudaSuccess);
  }
  void open() {
    open_.store(true, std::memory_order_release);  // pairs with pass()
    open_.notify_all();
  }

 private:
  void pass() { open_.wait(false, std::memory_order_acquire); }  // pairs with open()
  std::atomic<bool> open_{false};
};

struct Thrown {
  ErrorCode code{};
  std::string text;
};

template <class Action>
Thrown thrownBy(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline void expectSays(const Thrown& thrown, ErrorCode code, std::initializer_list<const char*> words) {
  EXPECT_EQ(thrown.code, code) << thrown.text;
  for (const char* word : words) EXPECT_NE(thrown.text.find(word), std::string::npos) << thrown.text;
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    ASSERT_GT(deviceCount(why), 0) << why;
    device_ = openDevice(0);
  }
  std::vector<std::byte> read(const std::byte* from, size_t bytes) {
    std::vector<std::byte> copy(bytes);
    device_->copy(copy.data(), from, bytes);
    return copy;
  }
  std::shared_ptr<Device> device_;
};

}  // namespace tutti::device::test
