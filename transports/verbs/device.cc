#include "transports/verbs/device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>

namespace tutti::verbs {
namespace {

struct List {
  int count = 0;
  ibv_device** all = ibv_get_device_list(&count);
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    if (all != nullptr) ibv_free_device_list(all);
  }
};

// A lane's speed and the number of lanes, both as verbs number them.
double gigabitsOf(const ibv_port_attr& port) {
  static const std::map<int, double> lanes{{1, 2.5}, {2, 5},   {4, 10},  {8, 10},
                                           {16, 14}, {32, 25}, {64, 50}, {128, 100}};
  static const std::map<int, double> widths{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  const auto lane = lanes.find(port.active_speed);
  const auto width = widths.find(port.active_width);
  return lane == lanes.end() || width == widths.end() ? 0 : lane->second * width->second;
}

int numaNodeOf(const char* device) {
  std::ifstream file(fmt::format("/sys/class/infiniband/{}/device/numa_node", device));
  int node = -1;
  return file >> node ? node : -1;
}

std::vector<GidEntry> gidsOf(ibv_context* context, int number, int length) {
  std::vector<GidEntry> gids;
  constexpr int kMostGids = 256;  // an address handle has 8 bits for the index
  for (int index = 0; index < std::min(length, kMostGids); ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, static_cast<uint32_t>(number), static_cast<uint32_t>(index), &entry, 0) != 0)
      continue;
    GidEntry gid{index, {}, entry.gid_type == IBV_GID_TYPE_ROCE_V2};
    std::memcpy(gid.gid.data(), entry.gid.raw, gid.gid.size());
    gids.push_back(gid);
  }
  return gids;
}

void addPorts(ibv_context* context, std::vector<Port>& ports) {
  if (context->device->transport_type != IBV_TRANSPORT_IB) return;  // what follows is not for iWARP, EFA and others
  ibv_device_attr device{};
  if (ibv_query_device(context, &device) != 0) return;
  for (int number = 1; number <= device.phys_port_cnt; ++number) {
    ibv_port_attr attributes{};
    if (ibv_query_port(context, static_cast<uint8_t>(number), &attributes) != 0) continue;
    Port port;
    port.device = ibv_get_device_name(context->device);
    port.number = number;
    port.isActive = attributes.state == IBV_PORT_ACTIVE;
    port.isEthernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    port.state = ibv_port_state_str(attributes.state);
    port.gigabits = gigabitsOf(attributes);
    port.numaNode = numaNodeOf(port.device.c_str());
    port.lid = attributes.lid;
    port.mtu = static_cast<uint8_t>(attributes.active_mtu);
    port.gids = gidsOf(context, number, attributes.gid_tbl_len);
    ports.push_back(std::move(port));
  }
}

}  // namespace

void refused(const std::string& what, int error) {
  const char* const advice =
      error == ENOMEM ? " (is the limit of locked memory high enough? `ulimit -l` says; unlimited is usual for RDMA)"
                      : "";
  throw std::runtime_error(fmt::format("{}: {}{}", what, std::strerror(error), advice));
}

Device::Device(ibv_context* context) : context_(context) {
  domain_ = ibv_alloc_pd(context);
  int error = domain_ == nullptr ? errno : ibv_query_device(context, &limits_);
  if (error == 0) return;
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  const std::string name = ibv_get_device_name(context->device);
  ibv_close_device(context);
  refused(name + " gives no protection domain", error);
}

Device::~Device() {
  memory_.reset();
  ibv_dealloc_pd(domain_);
  ibv_close_device(context_);
}

std::string Device::name() const { return ibv_get_device_name(context_->device); }

// For writing too, though it is only read: then it is this process's own pages that are registered, and not what it
// still shares with others until it writes. Where the kernel does not copy registered pages for a child, libibverbs
// keeps them from children: those of a link may be, the program's are not.
Registrar::Made Device::add(const void* begin, size_t bytes) noexcept {
  if (ibv_is_fork_initialized() != IBV_FORK_UNNEEDED) {
    errno = EOPNOTSUPP;
    return {};
  }
  ibv_mr* const made = ibv_reg_mr(domain_, const_cast<void*>(begin), bytes, IBV_ACCESS_LOCAL_WRITE);
  return made != nullptr ? Made{made, made->lkey} : Made{};
}

void Device::remove(void* handle) noexcept { ibv_dereg_mr(static_cast<ibv_mr*>(handle)); }

namespace {

// Of one process: what a parent has opened is none of its child's. Never destroyed, as threads may be in here at the
// end.
struct Opened {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Device>> devices;
};

Opened& openedHere() {
  static std::atomic<Opened*> current{nullptr};
  Opened* found = current.load(std::memory_order_acquire);
  if (found != nullptr && found->process == ::getpid()) return *found;
  auto* const made = new Opened;
  if (current.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *found;
}

}  // namespace

std::shared_ptr<Device> Device::named(const std::string& name) {
  Opened& opened = openedHere();
  const std::lock_guard lock(opened.mutex);
  if (auto device = opened.devices[name].lock()) return device;
  const List list;
  for (int i = 0; i < list.count; ++i) {
    if (ibv_get_device_name(list.all[i]) != name) continue;
    ibv_context* const context = ibv_open_device(list.all[i]);
    if (context == nullptr) refused(name + " cannot be opened", errno);
    std::shared_ptr<Device> device(new Device(context));
    opened.devices[name] = device;
    return device;
  }
  throw std::runtime_error(name + " is gone");
}

// The last owner of one may be whoever asks.
std::vector<std::shared_ptr<Device>> Device::all() {
  Opened& opened = openedHere();
  const std::lock_guard lock(opened.mutex);
  std::vector<std::shared_ptr<Device>> open;
  open.reserve(opened.devices.size());
  for (const auto& [name, device] : opened.devices)
    if (auto one = device.lock()) open.push_back(std::move(one));
  return open;
}

void Device::forget(uint64_t memory) {
  for (const auto& device : all()) device->memory_->forget(memory);
}

bool Device::giveUpOne() noexcept try {
  const auto devices = all();
  return std::ranges::any_of(devices, [](const auto& device) { return device->memory_->giveUpOne(); });
} catch (const std::exception&) {
  return false;
}

std::vector<Port> portsHere() {
  std::vector<Port> ports;
  const List list;
  for (int i = 0; i < list.count; ++i) {
    ibv_context* const context = ibv_open_device(list.all[i]);
    if (context == nullptr) continue;
    addPorts(context, ports);
    ibv_close_device(context);
  }
  return ports;
}

}  // namespace tutti::verbs
