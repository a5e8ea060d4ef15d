// What is told of trouble on a GPU, and to whom.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "device/program.h"
#include "gpu/record.h"
#include "team/team.h"

namespace tutti::gpu {

// Whom to tell, from a thread of its own, what a kernel met, which link through the host was cut off, what a peer has
// said of its registered buffers that can not be, and, every millisecond, which call waits for a rank.
struct GpuFaults {
  std::function<void(const device::Report& report)> kernel;
  std::function<void(int peer, const std::string& text)> cutOff;
  std::function<void(int peer, const std::string& what)> lie;
  std::function<void(const std::optional<StandingCall>& now, bool overNetwork)> standing;
};

// The troubles of a team, which must outlive what is returned: they stop it, in words. A call that stands still is
// watched over.
GpuFaults stopping(comm::Team& team);

}  // namespace tutti::gpu
