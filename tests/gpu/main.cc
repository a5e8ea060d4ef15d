// The main function of the tests on a real GPU. Without one it ends with the status that ctest knows as "skipped", and
// its last line says why.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <string>

#include "device/device.h"
#include "gpu/managed_memory.h"
#include "support/selected.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  testing::InitGoogleTest(&argc, argv);
  // Read when CUDA begins: with fewer hardware queues the streams of eight ranks would wait for each other.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  std::string why;
  if (!testing::GTEST_FLAG(list_tests) && tutti::device::deviceCount(why) == 0) {
    std::printf("skipped: no GPU: %s\n", why.c_str());
    return kSkipped;
  }
  std::pmr::set_default_resource(&tutti::test::managedMemory());
  const int status = RUN_ALL_TESTS();
  return tutti::test::noneSelected() ? 1 : status;
}
