// The lists in which Slurm names nodes and counts tasks, and names near to those of settings.
#include "base/error.h"
#include "fuzz/input.h"
#include "launch/nodelist.h"
#include "settings/survey.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::Input in(data, size);
  const auto what = in.take<uint8_t>();
  const std::string text = in.text();
  try {
    if (what % 3 == 0)
      control::expandNodes("SLURM_STEP_NODELIST", text);
    else if (what % 3 == 1)
      control::expandCounts("SLURM_STEP_TASKS_PER_NODE", text);
    else
      settings::nearestSetting(text);
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kInvalidArgument);
  }
  return 0;
}
