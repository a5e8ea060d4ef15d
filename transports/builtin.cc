// Joins the transports of this build to the registry: the one place that knows them all.
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/trimmed.h"
#include "link/plugin.h"
#include "link/registry.h"
#include "transports/p2p/p2p.h"
#include "transports/shm/shm.h"
#include "transports/tcp/tcp.h"
#include "transports/verbs/price.h"

namespace tutti::link {
namespace {

namespace fs = std::filesystem;
constexpr const char* kVerbsFile = "libtutti_verbs.so";

// The folder of the library that this code is in; of a program that has it built in, that of its libraries. What a
// program is called by is its caller's word (argv[0]), and so may the place be of one that runs with more rights than
// its caller has.
std::vector<fs::path> foldersOfLibraries() {
  std::vector<fs::path> folders;
  const bool hasMoreRights = ::getauxval(AT_SECURE) != 0;
  Dl_info ofSymbol{};
  link_map* object = nullptr;  // that of the program itself has no name
  if (::dladdr1(reinterpret_cast<const void*>(&builtinTransports), &ofSymbol, reinterpret_cast<void**>(&object),
                RTLD_DL_LINKMAP) != 0 &&
      object->l_name[0] != '\0' && (object->l_name[0] == '/' || !hasMoreRights))
    folders.push_back(fs::path(object->l_name).parent_path());
  if (hasMoreRights) return folders;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  folders.insert(folders.end(), {program, program / "../lib"});
  return folders;
}

// A machine without devices is spared the libraries for them.
bool hasDevices() {
  std::error_code error;
  return fs::directory_iterator("/sys/class/infiniband", error) != fs::directory_iterator();
}

std::vector<std::unique_ptr<Transport>> absentVerbs(const TransportSettings& settings, const std::string& why) {
  constexpr PluginPrice kPrice{verbs::kPrice.latencyUs, verbs::kPrice.bandwidthGBs};
  std::vector<std::unique_ptr<Transport>> all;
  if (settings.gpuSlots) all.push_back(makeAbsent(std::string("verbs").append(kOnGpu), priceOnGpu(kPrice), why));
  all.push_back(makeAbsent("verbs", kPrice, why));
  return all;
}

std::vector<std::unique_ptr<Transport>> makeVerbs(const TransportSettings& settings) {
  if (!hasDevices()) return absentVerbs(settings, "there is no RDMA device here");
  for (const fs::path& folder : foldersOfLibraries()) {
    std::error_code ignored;
    if (const fs::path file = folder / kVerbsFile; fs::exists(file, ignored)) try {
        return loadTransport(file, settings);
      } catch (const Error& error) {
        return absentVerbs(settings, error.what());
      }
  }
  return absentVerbs(settings,
                     std::string(kVerbsFile) + " is not beside libtutti.so: it is built where libibverbs-dev is");
}

void addAll(Registry& registry, std::vector<std::unique_ptr<Transport>> transports) {
  for (auto& transport : transports) registry.add(std::move(transport));
}

void addPlugins(Registry& registry, const TransportSettings& settings) {
  const std::string_view list = settings.plugins;
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    if (const auto path = trimmed(list.substr(at, comma - at)); !path.empty())
      addAll(registry, loadTransport(std::string(path), settings));
    at = comma + 1;
  }
}

}  // namespace

Registry builtinTransports(std::string_view list, const TransportSettings& settings) {
  Registry registry;
  registry.add(transports::makeP2p(settings.singleCopy != SingleCopy::kNever));
  registry.add(transports::makeShm(settings.singleCopy != SingleCopy::kNever));
  addAll(registry, makeVerbs(settings));
  addPlugins(registry, settings);
  registry.add(transports::makeTcp(settings.tcpCongestion));
  if (!list.empty()) registry.narrow(list);
  return registry;
}

}  // namespace tutti::link
