#include "settings/foreign_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tutti::settings {
namespace {

struct Counterpart {
  Name foreign;
  const char* ours;       // what to write instead; empty: there is none
  const char* idle = "";  // the value that asks for nothing: what is so here anyway
};

// What a variable of NCCL's is used for, and not each detail of what it does. Those that say where NCCL is installed
// (NCCL_HOME, NCCL_VERSION, ...) set nothing and are not here, nor are those of nccl-tests.
constexpr Counterpart kCounterparts[] = {
    {"NCCL_DEBUG", "TUTTI_DEBUG"},
    {"NCCL_ALGO", "TUTTI_ALGO"},
    {"NCCL_PROTO", "TUTTI_PROTOCOL"},
    {"NCCL_SOCKET_IFNAME", "TUTTI_SOCKET_IFNAME"},
    {"NCCL_SOCKET_FAMILY", "TUTTI_SOCKET_FAMILY=4 (AF_INET) or 6 (AF_INET6)"},
    {"NCCL_COMM_ID", "TUTTI_ROOT"},
    {"NCCL_HOSTID", "TUTTI_HOST_ID"},
    {"NCCL_P2P_DISABLE", "TUTTI_TRANSPORT=^p2p", "0"},
    {"NCCL_SHM_DISABLE", "TUTTI_TRANSPORT=^shm", "0"},
    {"NCCL_NET", "TUTTI_TRANSPORT"},
    {"NCCL_IB_DISABLE", "TUTTI_TRANSPORT=^verbs", "0"},
    {"NCCL_IB_HCA", "TUTTI_IB_HCA"},
    {"NCCL_IB_GID_INDEX", "TUTTI_IB_GID_INDEX", "-1"},
    {"NCCL_IB_QPS_PER_CONNECTION", "TUTTI_IB_QPS_PER_CONNECTION", "1"},
    {"NCCL_IB_TC", "TUTTI_IB_TC", "0"},
    {"NCCL_IB_SL", "TUTTI_IB_SL", "0"},
    {"NCCL_IB_TIMEOUT", "TUTTI_IB_TIMEOUT"},
    {"NCCL_IB_RETRY_CNT", "TUTTI_IB_RETRY_CNT"},
    {"NCCL_IB_PCI_RELAXED_ORDERING", "TUTTI_IB_PCI_RELAXED_ORDERING", "1"},
    {"NCCL_NCHANNELS", "TUTTI_CHANNELS"},
    {"NCCL_MIN_NCHANNELS", "TUTTI_CHANNELS"},
    {"NCCL_MAX_NCHANNELS", "TUTTI_CHANNELS"},
    {"NCCL_MIN_CTAS", "TUTTI_CHANNELS"},
    {"NCCL_MAX_CTAS", "TUTTI_CHANNELS"},
    {"NCCL_BUFFSIZE", ""},  // of a channel, in bytes; TUTTI_GPU_BUFFER_MIB is for all links of a rank
    {"NCCL_COMM_BLOCKING", "", "1"},
    {"NCCL_DEBUG_FILE", "TUTTI_DEBUG_FILE"},
    {"NCCL_DEBUG_SUBSYS", ""},
    {"NCCL_P2P_LEVEL", ""},
    {"NCCL_NET_PLUGIN", ""},
    {"NCCL_NET_GDR_LEVEL", ""},
    {"NCCL_CROSS_NIC", ""},
    {"NCCL_NTHREADS", ""},
    {"NCCL_NSOCKS_PERTHREAD", ""},
    {"NCCL_SOCKET_NTHREADS", ""},
    {"NCCL_LAUNCH_MODE", ""},
    {"NCCL_TOPO_FILE", "TUTTI_TOPO_FILE"},
    {"NCCL_GRAPH_FILE", ""},
    {"NCCL_CONF_FILE", "TUTTI_CONF_FILE"},
    {"NCCL_TUNER_PLUGIN", ""},
    {"NCCL_CUMEM_ENABLE", "", "0"},
    {"NCCL_NVLS_ENABLE", "", "0"},
    {"NCCL_COLLNET_ENABLE", "", "0"},
    {"NCCL_BLOCKING_WAIT", "", "0"},
    {"NCCL_ASYNC_ERROR_HANDLING", "", "0"},
};
constexpr std::string_view kRdma = "NCCL_IB_";  // a family of its own: those that are not above

// Whether a line about it tells its user anything: not where it asks for what is so anyway, nor where the one of ours
// is set already.
bool isWorthALine(const Environment& environment, const Counterpart& one) {
  const auto value = environment.find(one.foreign);
  if (!value || *value == one.idle) return false;
  const std::string_view ours = one.ours;
  const Setting* const setting = findSetting(ours.substr(0, ours.find('=')));
  return setting == nullptr || !environment.valueOf(*setting);
}

}  // namespace

std::string foreignNames(const Environment& environment) {
  const auto hasCounterpart = [](const std::string& name) {
    return std::ranges::any_of(kCounterparts, [&](const Counterpart& one) { return name == one.foreign.text(); });
  };
  std::vector<std::string> pairs, without = environment.names(kRdma);
  std::erase_if(without, hasCounterpart);
  std::sort(without.begin(), without.end());
  for (const Counterpart& one : kCounterparts) {
    if (!isWorthALine(environment, one)) continue;
    if (*one.ours)
      pairs.push_back(fmt::format("{} for {}", one.ours, one.foreign.text()));
    else
      without.emplace_back(one.foreign.text());
  }
  if (pairs.empty() && without.empty()) return {};
  std::string line = "NCCL's variables are not read here";
  if (!pairs.empty()) line += fmt::format("; set {}", fmt::join(pairs, ", "));
  if (!without.empty()) line += fmt::format("; nothing here does what {} does", fmt::join(without, ", "));
  return line + " (docs/settings.md)";
}

}  // namespace tutti::settings
