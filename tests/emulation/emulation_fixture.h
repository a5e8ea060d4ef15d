// What the tests of the emulation share: memory that goes with its owner, and a clean device before and after.
#pragma once
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>

#include "emulation/control.h"

namespace tutti::emulation {

// Pinned memory: kernels and the test see it alike.
template <class T>
class Pinned {
 public:
  explicit Pinned(size_t count, T value = {}) : count_(count) {
    EXPECT_EQ(cudaHostAlloc(&data_, count * sizeof(T), cudaHostAllocMapped), cudaSuccess);
    for (auto& element : *this) element = value;
  }
  ~Pinned() { EXPECT_EQ(cudaFreeHost(data_), cudaSuccess); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t count_;
};

// A stream that does not wait for the NULL stream.
class TestStream {
 public:
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
  }
  ~TestStream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class EmulationTest : public testing::Test {
 protected:
  void SetUp() override {
    setSeed(1);
    setDeviceCount(1);
    setMultiprocessors(132, 1);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    (void)cudaGetLastError();
  }
  void TearDown() override {
    EXPECT_EQ(lastReport(), "");
    clearReports();
  }
};

// Expects that what was launched has failed, with a report that has all of `parts` in it; the device is well again.
inline void expectReport(std::initializer_list<std::string> parts) {
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  for (const auto& part : parts) EXPECT_NE(lastReport().find(part), std::string::npos) << part << "\n" << lastReport();
  clearReports();
  (void)cudaGetLastError();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace tutti::emulation
