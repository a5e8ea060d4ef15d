#include "gpu/host_staged_links.h"

#include <fmt/format.h>

#include <set>
#include <thread>

#include "base/deadline_names.h"
#include "base/error.h"
#include "wire/messages.h"

namespace tutti::gpu {

HostStagedLinks::HostStagedLinks(comm::Links& links, device::Device& device, const std::vector<int>& peers,
                                 uint32_t channels, Deadline deadline) {
  while (!connect(links, peers, channels)) {
    if (deadline.passed())
      throw Error(
          ErrorCode::kTimeout,
          fmt::format("this GPU's links to {}, which it does not reach directly, did not come to stand within {}",
                      control::nameRanks(unconnected()), kConnectDeadline));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  for (const auto& [key, connection] : ends_) {
    pinned_.push_back(device.pin(connection->memory.data(), connection->memory.size()));
    if (connection->send.driver) drivers_.emplace_back(key.first, connection->send.driver);
  }
}

std::vector<int> HostStagedLinks::unconnected() const {
  std::set<int> peers;
  for (const auto& [key, connection] : ends_)
    if (!connection) peers.insert(key.first);
  return {peers.begin(), peers.end()};
}

// Helps all of them along; true when all stand.
bool HostStagedLinks::connect(comm::Links& links, const std::vector<int>& peers, uint32_t channels) {
  bool all = true;
  for (const int peer : peers)
    for (uint32_t channel = 0; channel < channels; ++channel) {
      link::Connection*& connection = ends_[{peer, channel}];
      if (!connection) connection = links.find(peer, static_cast<int>(channel));
      all = all && connection;
    }
  return all;
}

// The host's self-test has already used some slots.
device::End HostStagedLinks::sendEnd(uint32_t channel, int peer) const {
  const link::SendEnd& end = ends_.at({peer, channel})->send;
  return {end.fifo, end.posted};
}

device::End HostStagedLinks::recvEnd(uint32_t channel, int peer) const {
  const link::RecvEnd& end = ends_.at({peer, channel})->recv;
  return {end.fifo, end.received};
}

bool HostStagedLinks::drive() noexcept {
  bool moved = false;
  for (const auto& [peer, driver] : drivers_) {
    const link::Progress progress = driver->drive();
    moved = moved || progress == link::Progress::kAdvanced;
    if (progress == link::Progress::kFailed && !failure_) failure_ = Failure{peer, link::whyFailed(*driver)};
  }
  if (moved) attendance_.moved();
  return moved;
}

void HostStagedLinks::pause(bool busy) noexcept {
  attendance_.pause(busy, [this](engine::Sleeper& sleeper) {
    for (const auto& [peer, driver] : drivers_) sleeper.watch(*driver);
  });
}

}  // namespace tutti::gpu
