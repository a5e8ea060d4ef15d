#include "detect/complete.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "topology/bus_id.h"
#include "topology/ports.h"

namespace tutti::detect {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::System;

template <class Value>
void take(Value& own, const Value& found, const Value& unknown = {}) {
  if (own == unknown) own = found;
}

void take(topology::Numa& own, const topology::Numa& found) {
  take(own.affinity, found.affinity);
  take(own.arch, found.arch);
  if (own.vendor.empty()) own.family = found.family, own.model = found.model;
  take(own.vendor, found.vendor);
}

void take(topology::Pci& own, const topology::Pci& found) {
  take(own.classCode, found.classCode);
  take(own.vendor, found.vendor);
  take(own.device, found.device);
  take(own.subsystemVendor, found.subsystemVendor);
  take(own.subsystemDevice, found.subsystemDevice);
  take(own.speed, found.speed);
  take(own.width, found.width);
}

void take(topology::Gpu& own, const topology::Gpu& found) {
  take(own.number, found.number, -1);
  take(own.sm, found.sm);
  take(own.nvlinks, found.nvlinks);
}

void take(topology::Port& own, const topology::Port& found) {
  take(own.megabits, found.megabits);
  take(own.ofNic, found.ofNic, -1);
  take(own.guid, found.guid);
  take(own.layer, found.layer);
  take(own.gids, found.gids);
}

template <class Part>
void takePart(std::optional<Part>& own, const std::optional<Part>& found) {
  if (own && found) take(*own, *found);
  if (!own) own = found;
}

void fill(Device& own, const Device& found) {
  if (own.pci && own.pci->classCode.empty()) own.kind = found.kind;
  takePart(own.numa, found.numa);
  if (own.pci) takePart(own.pci, found.pci);
  takePart(own.port, found.port);
  if (own.kind == DeviceKind::kGpu) takePart(own.gpu, found.gpu);
  if (own.kind == DeviceKind::kNic && !own.nic) own.nic = found.nic;
}

class Completing {
 public:
  Completing(System partial, const System& found)
      : found_(found), places_(found.devices.size(), -1), system_(std::move(partial)), count_(system_.devices.size()) {}
  System run();

 private:
  int place(int device);
  int match(int device) const;
  bool isSame(int own, int device) const;
  bool shareAPort(int own, int device) const;
  void ports(int nic);
  void sayWhatIsNotHere();

  const System& found_;
  std::vector<int> places_;  // of what was found
  System system_;
  size_t count_;  // of devices that the description has itself
  std::vector<std::string> added_;
};

bool Completing::shareAPort(int own, int device) const {
  const auto ports = childrenOf(system_, own), others = childrenOf(found_, device);
  return std::any_of(ports.begin(), ports.end(), [&](int port) {
    return std::any_of(others.begin(), others.end(), [&](int other) {
      const auto &a = system_.devices[port].port, &b = found_.devices[other].port;
      return a && b && !a->name.empty() && a->name == b->name;
    });
  });
}

bool Completing::isSame(int own, int device) const {
  const Device &a = system_.devices[own], &b = found_.devices[device];
  if (a.numa || b.numa) return a.numa && b.numa && a.numa->number == b.numa->number;
  if (a.pci && b.pci) return topology::parseBusId(a.pci->busId) == topology::parseBusId(b.pci->busId);
  return a.kind == DeviceKind::kNic && b.kind == DeviceKind::kNic && shareAPort(own, device);
}

int Completing::match(int device) const {
  for (size_t own = 0; own < count_; ++own)
    if (!system_.devices[own].port && isSame(static_cast<int>(own), device)) return static_cast<int>(own);
  return -1;
}

// Where a device is in the description, to which it is added if it is not there.
int Completing::place(int device) {
  int& own = places_[device];
  if (own >= 0) return own;
  own = match(device);
  if (own >= 0) {
    fill(system_.devices[own], found_.devices[device]);
    return own;
  }
  Device added = found_.devices[device];
  if (added.parent >= 0) added.parent = place(added.parent);
  if (added.kind != DeviceKind::kPci) added_.push_back(nameOf(found_, device));
  own = static_cast<int>(system_.devices.size());
  system_.devices.push_back(std::move(added));
  return own;
}

// A description that names ports of a NIC names them all.
void Completing::ports(int nic) {
  const int own = place(nic);
  const auto known = childrenOf(system_, own);
  for (const int child : childrenOf(found_, nic)) {
    Device port = found_.devices[child];
    if (!port.port) continue;
    for (const int one : known)
      if (auto& is = system_.devices[one].port;
          is && is->name == port.port->name && (is->ofNic < 0 || is->ofNic == port.port->ofNic))
        take(*is, *port.port);
    if (!known.empty()) continue;
    port.parent = own;
    port.port->number = -1;
    system_.devices.push_back(std::move(port));
  }
}

void Completing::sayWhatIsNotHere() {
  std::vector<std::string> missing;
  for (int own = 0; own < static_cast<int>(count_); ++own) {
    const DeviceKind kind = system_.devices[own].kind;
    const bool here = std::find(places_.begin(), places_.end(), own) != places_.end();
    if (!here && (kind == DeviceKind::kGpu || kind == DeviceKind::kNic)) missing.push_back(nameOf(system_, own));
  }
  if (!missing.empty())
    system_.remarks.push_back(fmt::format("in the file, but not found on this machine: {}", fmt::join(missing, ", ")));
}

System Completing::run() {
  for (size_t i = 0; i < found_.devices.size(); ++i) {
    const Device& one = found_.devices[i];
    if (one.port || one.kind == DeviceKind::kPci) continue;  // switches are added for what is below them
    place(static_cast<int>(i));
    if (one.kind == DeviceKind::kNic) ports(static_cast<int>(i));
  }
  if (!added_.empty())
    system_.remarks.push_back(fmt::format("added, since it is on this machine: {}", fmt::join(added_, ", ")));
  sayWhatIsNotHere();
  numberPorts(system_);
  return std::move(system_);
}

void requireOneHost(const System& system) {
  const auto nodes = devicesOf(system, DeviceKind::kNuma);
  for (const int node : nodes)
    if (system.devices[node].numa->host != system.devices[nodes.front()].numa->host)
      throw Error(ErrorCode::kInvalidArgument,
                  "it describes several hosts: what is on this one completes a file of one host");
}

}  // namespace

System completed(System partial, const System& found) {
  requireOneHost(partial);
  System system = Completing(std::move(partial), found).run();
  system.remarks.insert(system.remarks.end(), found.remarks.begin(), found.remarks.end());
  return system;
}

}  // namespace tutti::detect
