// What a link over RDMA is taken to cost, known without a device: ranks that have none plan as those that do.
#pragma once

namespace tutti::verbs {

// Microseconds, and GB/s: of 100 Gbit/s, less what packets take. Of all devices alike, as both ends of a link have to
// choose alike.
struct Price {
  double latencyUs = 2.5, bandwidthGBs = 11.875;
};
inline constexpr Price kPrice;

}  // namespace tutti::verbs
