// What the host transports can do, as far as it is known before anything is measured: the cost model's input.
// Latency is one slot of a few bytes from post to ready, bandwidth a long message in one direction.
#pragma once

namespace tutti::link {

struct ReachConstants {
  double latencyUs;
  double bandwidthGBs;
};

inline constexpr ReachConstants kP2pReach{0.3, 8.0};
inline constexpr ReachConstants kShmReach{0.3, 7.0};
inline constexpr ReachConstants kTcpLoopbackReach{8.0, 3.0};
inline constexpr ReachConstants kTcpNetworkReach{20.0, 1.2};

// The message by which candidates are compared: cost = latency + kTypicalBytes / bandwidth.
inline constexpr double kTypicalBytes = 64 << 10;

}  // namespace tutti::link
