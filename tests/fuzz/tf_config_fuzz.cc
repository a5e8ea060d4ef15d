// TF_CONFIG alone, as the launcher that says everything.
#include "base/error.h"
#include "fuzz/input.h"
#include "launch/launcher.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  const settings::Environment environment({{"TF_CONFIG", fuzz::Input(data, size).text()}});
  try {
    const control::LaunchInfo launch = control::readLaunch(environment);
    fuzz::require(launch.rank >= 0 && launch.rank < launch.size);
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kInvalidUsage);
  }
  return 0;
}
