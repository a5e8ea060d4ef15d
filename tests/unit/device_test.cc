// What the port to a GPU says where there is none. Elsewhere the tests of GPUs say more.
#include "device/device.h"

#include <gtest/gtest.h>

namespace tutti::device {
namespace {

class NoDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (device::deviceCount(why_) > 0) GTEST_SKIP() << "this machine has a GPU";
  }
  std::string why_;
};

TEST_F(NoDevice, SaysWhyAndWhatToDo) {
  EXPECT_NE(why_.find("CUDA"), std::string::npos) << why_;
  const bool knows =
      why_.find("built without CUDA") != std::string::npos || why_.find("CUDA driver") != std::string::npos;
  EXPECT_TRUE(knows) << why_;
}

TEST_F(NoDevice, NoneIsCurrent) { EXPECT_EQ(device::currentDevice(), -1); }

TEST_F(NoDevice, OpeningOneNamesItAndTheReason) {
  try {
    device::openDevice(3);
    FAIL() << "a device was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_NE(text.find("GPU 3"), std::string::npos) << text;
    EXPECT_NE(text.find(why_), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tutti::device
