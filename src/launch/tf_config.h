// TF_CONFIG, in which TensorFlow's operators and users describe a cluster:
// {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", ...], "ps": [...]}, "task": {"type": "worker", "index": 0}}
#pragma once
#include "launch/launch.h"
#include "settings/settings.h"

namespace tutti::control {

// Whether it names a cluster: some set it to {} for a program that runs alone. Throws Error(kInvalidArgument) when it
// is no JSON.
bool tfConfigApplies(const settings::Environment& environment);
// Chief, then workers, are the ranks. Throws Error(kInvalidArgument | kInvalidUsage): the latter for a task that is
// none of them.
void readTfConfig(const settings::Environment& environment, LaunchInfo& launch);
// The host of rank 0.
bool placeOfTfConfig(const settings::Environment& environment, LaunchInfo& launch);

}  // namespace tutti::control
