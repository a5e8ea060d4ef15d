#include "plan/profile.h"

namespace tutti::plan {

const LinkCost* linkOf(const Profile& profile, std::string_view transport, bool sameHost) noexcept {
  if (transport == "p2p") return &profile.p2p;
  if (transport == "shm") return &profile.shm;
  if (transport == "tcp") return sameHost ? &profile.tcpLoopback : &profile.tcpNetwork;
  return nullptr;
}

}  // namespace tutti::plan
