// The prices of a profile by the names that files have for them, with the limits of what a machine may have.
#pragma once
#include <array>

#include "plan/profile.h"

namespace tutti::plan {

struct Price {
  const char* name;
  double& (*of)(Profile&);
  double low, high;  // both included
};

// A link's latency also tells whether the model takes it for one through the kernel (costs::kNetworkLatencyUs).
inline constexpr double kMostMappedUs = costs::kNetworkLatencyUs - 0.01;
inline constexpr double kMostUs = 1e6, kLeastGBs = 1e-3, kMostGBs = 1e5;

#define TUTTI_PRICE(name, member, low, high)                                    \
  Price {                                                                       \
    name, [](Profile& profile) -> double& { return profile.member; }, low, high \
  }
inline constexpr std::array kPrices = {
    TUTTI_PRICE("copy_gb_per_s", copyGBs, kLeastGBs, kMostGBs),
    TUTTI_PRICE("combine_gb_per_s", combineGBs, kLeastGBs, kMostGBs),
    TUTTI_PRICE("cold_factor", coldFactor, 1, 100),
    TUTTI_PRICE("hot_bytes", hotBytes, 1 << 12, 1e12),
    TUTTI_PRICE("mapped_message_us", mappedMessageUs, 0, kMostUs),
    TUTTI_PRICE("network_message_us", networkMessageUs, 0, kMostUs),
    TUTTI_PRICE("turn_us", turnUs, 0, kMostUs),
    TUTTI_PRICE("skew", skew, 0, 100),
    TUTTI_PRICE("fan_loss", fanLoss, 0, 100),
    TUTTI_PRICE("p2p_latency_us", p2p.latencyUs, 0, kMostMappedUs),
    TUTTI_PRICE("p2p_gb_per_s", p2p.bandwidthGBs, kLeastGBs, kMostGBs),
    TUTTI_PRICE("shm_latency_us", shm.latencyUs, 0, kMostMappedUs),
    TUTTI_PRICE("shm_gb_per_s", shm.bandwidthGBs, kLeastGBs, kMostGBs),
    TUTTI_PRICE("tcp_loopback_latency_us", tcpLoopback.latencyUs, costs::kNetworkLatencyUs, kMostUs),
    TUTTI_PRICE("tcp_loopback_gb_per_s", tcpLoopback.bandwidthGBs, kLeastGBs, kMostGBs),
    TUTTI_PRICE("tcp_network_latency_us", tcpNetwork.latencyUs, costs::kNetworkLatencyUs, kMostUs),
    TUTTI_PRICE("tcp_network_gb_per_s", tcpNetwork.bandwidthGBs, kLeastGBs, kMostGBs),
};
#undef TUTTI_PRICE

}  // namespace tutti::plan
