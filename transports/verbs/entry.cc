// What libtutti_verbs.so exports: the functions of tutti/transport.h over a Connection.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>

#include <tutti/transport.h>

#include "transports/verbs/connection.h"
#include "transports/verbs/device.h"
#include "transports/verbs/price.h"

namespace tutti::verbs {
namespace {

std::atomic<const tuttiTransportHost*> host;  // the same for each who asks
std::once_flag forksAreTold;

const char* find(tuttiTransportSettings settings, const char* name) noexcept {
  for (; settings != nullptr && settings[0] != nullptr; settings += 2)
    if (std::strcmp(settings[0], name) == 0) return settings[1];
  return "";
}

// tutti has looked at its range.
int numberOf(tuttiTransportSettings settings, const char* name, int fallback) noexcept {
  const char* const text = find(settings, name);
  return *text != '\0' ? std::atoi(text) : fallback;
}

LinkSettings settingsOf(tuttiTransportSettings settings) {
  LinkSettings all;
  Behaviour& how = all.behaviour;
  const auto number = [&](const char* name, auto fallback) {
    return static_cast<decltype(fallback)>(numberOf(settings, name, fallback));
  };
  all.ports = find(settings, "TUTTI_IB_HCA");
  all.pairsPerPort = number("TUTTI_IB_QPS_PER_CONNECTION", all.pairsPerPort);
  all.mostMemory = static_cast<size_t>(number("TUTTI_IB_MEMORY_MIB", 0)) << 20;
  how.gidIndex = number("TUTTI_IB_GID_INDEX", how.gidIndex);
  how.trafficClass = number("TUTTI_IB_TC", how.trafficClass);
  how.serviceLevel = number("TUTTI_IB_SL", how.serviceLevel);
  how.timeout = number("TUTTI_IB_TIMEOUT", how.timeout);
  how.retries = number("TUTTI_IB_RETRY_CNT", how.retries);
  how.relaxed = numberOf(settings, "TUTTI_IB_PCI_RELAXED_ORDERING", how.relaxed ? 1 : 0) != 0;
  return all;
}

void say(std::string_view what, char* text, size_t room) noexcept {
  if (room == 0) return;
  const size_t bytes = std::min(what.size(), room - 1);
  std::memcpy(text, what.data(), bytes);
  text[bytes] = '\0';
}

Connection& of(void* connection) noexcept { return *static_cast<Connection*>(connection); }
tuttiTransportProgress said(Progress progress) noexcept { return static_cast<tuttiTransportProgress>(progress); }
static_assert(static_cast<int>(Progress::kFailed) == tuttiTransportFailed &&
              static_cast<int>(Progress::kAdvanced) == tuttiTransportAdvanced);

// With ports that are up, what may still be missing shows when a link is made.
int usable(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room) noexcept try {
  const std::vector<Port> all = portsHere();
  const char* const list = find(settings, "TUTTI_IB_HCA");
  if (!portsOf(all, list, self->numaNode, 0, kMostPaths).empty()) return 1;
  say(whyNone(all, list), text, room);
  return 0;
} catch (const std::exception& error) {
  say(error.what(), text, room);
  return 0;
}

int reachesGpu(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room) noexcept try {
  const std::vector<Port> all = portsHere();
  const auto chosen = portsOf(all, find(settings, "TUTTI_IB_HCA"), self->numaNode, 0, kMostPaths);
  const std::string why = whyNotOnGpu(chosen, self->numaNode);
  if (why.empty()) return 1;
  say(why, text, room);
  return 0;
} catch (const std::exception& error) {
  say(error.what(), text, room);
  return 0;
}

void* open(const tuttiTransportEdge* edge, const tuttiTransportLine* line, char* text, size_t room) noexcept try {
  return new Connection(*edge, *line, settingsOf(edge->settings), *host.load());
} catch (const std::exception& error) {
  say(error.what(), text, room);
  return nullptr;
}

void tellError(void* connection, char* text, size_t room) noexcept try {
  say(of(connection).error(), text, room);
} catch (const std::exception&) {
  say("no memory to say what has failed", text, room);
}

void forget(const tuttiTransportMemory* memory) noexcept try {
  Device::forget(memory->number);
} catch (
    const std::exception&) {  // no memory for a list of devices: the kernel keeps the pages until the last link ends
}

constexpr tuttiTransport kTable{
    .abi = TUTTI_TRANSPORT_ABI,
    .name = "verbs",
    .latencyUs = kPrice.latencyUs,
    .bandwidthGBs = kPrice.bandwidthGBs,
    .usable = usable,
    .open = open,
    .connect = [](void* connection) noexcept { return said(of(connection).connect()); },
    .progress = [](void* connection) noexcept { return said(of(connection).progress()); },
    .sending = [](void* connection) noexcept { return of(connection).sending() ? 1 : 0; },
    .interest = [](void* connection, short* events) noexcept { return of(connection).interest(*events); },
    .error = tellError,
    .close = [](void* connection) noexcept { delete static_cast<Connection*>(connection); },
    .hold = [](void* connection,
               const tuttiTransportMemory* memory) noexcept { return of(connection).hold(*memory) ? 1 : 0; },
    .letGo = [](void* connection, const tuttiTransportMemory* memory) noexcept { of(connection).letGo(*memory); },
    .takeBack = [](void* connection) noexcept { of(connection).takeBack(); },
    .forget = forget,
    .reachesGpu = reachesGpu,
};

}  // namespace
}  // namespace tutti::verbs

// Each who asks stores the same value, before it opens a link. Where the kernel does not look after pinned memory in a
// child by itself, libibverbs has to be told, once and before the first is pinned.
extern "C" __attribute__((visibility("default"))) const tuttiTransport* tuttiTransportEntry(
    const tuttiTransportHost* host, char* text, size_t room) {
  if (host->abi != TUTTI_TRANSPORT_ABI) {
    tutti::verbs::say("libtutti_verbs.so is of another version than libtutti.so", text, room);
    return nullptr;
  }
  std::call_once(tutti::verbs::forksAreTold, [] {
    if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) ibv_fork_init();
  });
  tutti::verbs::host.store(host);
  return &tutti::verbs::kTable;
}
