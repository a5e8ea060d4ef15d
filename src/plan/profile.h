// The prices by which algorithms are compared on a host: those that the library ships with (base/costs.h says where
// each comes from), or those of a file that tutti-tune wrote for a kind of machine.
#pragma once
#include <cstdint>
#include <string>
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

// The JSON of a file: every price by its name. `about` says what machine it is of, and how it was measured.
std::string profileText(const Profile& profile, const std::string& about);

// The other way. Prices that are not named keep the values that the library ships with. Throws
// Error(kInvalidArgument), with `source` in front, for what is no such JSON, a price that there is none of, or one that
// no machine has.
Profile profileFromText(const std::string& text, const std::string& source);

// Of a file; as profileFromText. Throws Error(kInvalidArgument) when it can not be read or has more than 64 KiB.
Profile readProfile(const std::string& path);

// Tells one profile from another, as ranks compare them: "shipped", or 16 hexadecimal digits.
std::string digestOf(const Profile& profile);

}  // namespace tutti::plan
