// Links of a communicator on GPUs to peers whose GPU can not be reached directly. Headers, and most slots, are in
// pinned memory of the host, slots of some networks on the GPU (link/gpu_slots.h); the kernels read and write them in
// place, and what a network carries a thread moves. They are the links of the host's transports, chosen and tried out
// as for any communicator (src/link).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "device/device.h"
#include "engine/attendance.h"
#include "team/links.h"

namespace tutti::gpu {

class HostStagedLinks {
 public:
  // `peers`, ascending; every one of them does the same. Blocks until all links stand; throws Error.
  HostStagedLinks(comm::Links& links, device::Device& device, const std::vector<int>& peers, uint32_t channels,
                  Deadline deadline);

  bool empty() const noexcept { return ends_.empty(); }
  device::End sendEnd(uint32_t channel, int peer) const;
  device::End recvEnd(uint32_t channel, int peer) const;

  // Moves what has been posted, if any link is of a network. True when something moved. Never blocks.
  bool drive() noexcept;
  bool needDriving() const noexcept { return !drivers_.empty(); }
  // After a turn in which nothing moved; `busy`: something runs on the GPU.
  void pause(bool busy) noexcept;
  // After a link has failed: whose, and how.
  struct Failure {
    int peer;
    std::string text;
  };
  const std::optional<Failure>& failure() const noexcept { return failure_; }

 private:
  bool connect(comm::Links& links, const std::vector<int>& peers, uint32_t channels);
  std::vector<int> unconnected() const;

  std::map<std::pair<int, uint32_t>, link::Connection*> ends_;
  std::vector<std::unique_ptr<device::DeviceMemory>> pinned_;
  std::vector<std::pair<int, link::Driver*>> drivers_;  // with their peers
  engine::Attendance attendance_;
  std::optional<Failure> failure_;
};

}  // namespace tutti::gpu
