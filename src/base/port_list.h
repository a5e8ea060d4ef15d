// Lists of RDMA ports (TUTTI_IB_HCA), as NCCL has them in NCCL_IB_HCA: "mlx5_0,mlx5_1:2" are beginnings of devices'
// names, each perhaps with a port, after "=" whole names, after "^" or "^=" all but these. An empty list means all.
#pragma once
#include <algorithm>
#include <charconv>
#include <string_view>

namespace tutti {

// Whether "mlx5_1:2" means that port.
inline bool namesPort(std::string_view one, std::string_view device, int port, bool whole) noexcept {
  const size_t colon = one.find(':');
  const std::string_view name = one.substr(0, colon);
  if (whole ? device != name : !device.starts_with(name)) return false;
  if (colon == std::string_view::npos) return true;
  int number = 0;
  const std::string_view digits = one.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() && number == port;
}

inline bool meansPort(std::string_view list, std::string_view device, int port) noexcept {
  const bool inverted = list.starts_with('^');
  if (inverted) list.remove_prefix(1);
  const bool whole = list.starts_with('=');
  if (whole) list.remove_prefix(1);
  if (list.empty()) return true;
  bool found = false;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view one = list.substr(0, comma);
    found = found || (!one.empty() && namesPort(one, device, port, whole));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return found != inverted;
}

}  // namespace tutti
