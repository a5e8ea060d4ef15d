// Bus bandwidth, as nccl-tests means it: what of an operation's bytes has to cross the slowest link, whatever the
// algorithm. So it may be compared between operations, and with what the hardware can do.
#pragma once
#include <map>
#include <string>

namespace tutti::integrations {

// Bytes that cross for each byte that statistics count: of the whole message, of a gather and a scatter of a rank's own
// part. 0 for what moves nothing.
inline double busFactor(const std::string& operation, int ranks) {
  if (ranks < 2) return 0;
  const double others = ranks - 1, share = others / ranks;
  const std::map<std::string, double> factors{{"all_reduce", 2 * share},
                                              {"all_gather", share},
                                              {"reduce_scatter", share},
                                              {"all_to_all", share},
                                              {"gather", others},
                                              {"scatter", others},
                                              {"broadcast", 1},
                                              {"reduce", 1},
                                              {"send", 1},
                                              {"recv", 1}};
  const auto found = factors.find(operation);
  return found == factors.end() ? 0 : found->second;
}

}  // namespace tutti::integrations
