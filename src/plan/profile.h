// The prices by which algorithms are compared on a host: those that the library ships with (base/costs.h says where
// each comes from), or those of a file that tutti-tune wrote for a kind of machine.
#pragma once
#include <string_view>

#include "base/costs.h"

namespace tutti::plan {

// What the model needs to know about one kind of link.
using LinkCost = costs::Link;

// A value. What each price means stands in base/costs.h.
struct Profile {
  double copyGBs = costs::kCopyGBs;
  double combineGBs = costs::kCombineGBs;
  double coldFactor = costs::kColdFactor;
  double hotBytes = costs::kHotBytes;
  double mappedMessageUs = costs::kMappedMessageUs;
  double networkMessageUs = costs::kNetworkMessageUs;
  double turnUs = costs::kTurnUs;
  double skew = costs::kSkew;
  double fanLoss = costs::kFanLoss;
  LinkCost p2p = costs::kP2p, shm = costs::kShm, tcpLoopback = costs::kTcpLoopback, tcpNetwork = costs::kTcpNetwork;
  friend bool operator==(const Profile&, const Profile&) = default;
};

// That of a transport between two ranks of one host, or of different ones; null where the profile has none for it.
const LinkCost* linkOf(const Profile& profile, std::string_view transport, bool sameHost) noexcept;

}  // namespace tutti::plan
