#include "preflight/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <sstream>

namespace tutti::preflight {
namespace {

using detect::Sysfs;

const std::string kPci = "/sys/bus/pci/devices", kRdmaDevices = "/sys/class/infiniband";

bool isNvidiaGpu(const Sysfs& sysfs, const std::string& name) {
  const std::string folder = kPci + "/" + name;
  return sysfs.line(folder + "/vendor").value_or("") == "0x10de" &&
         sysfs.line(folder + "/class").value_or("").starts_with("0x03");
}

bool isBridge(const Sysfs& sysfs, const std::string& name) {
  return sysfs.line(kPci + "/" + name + "/class").value_or("").starts_with("0x0604");
}

// Folders of the devices that are to talk to each other.
std::vector<std::string> talkers(const Sysfs& sysfs) {
  std::vector<std::string> folders;
  for (const std::string& name : sysfs.names(kRdmaDevices)) folders.push_back(kRdmaDevices + "/" + name + "/device");
  for (const std::string& name : sysfs.names(kPci))
    if (isNvidiaGpu(sysfs, name)) folders.push_back(kPci + "/" + name);
  return folders;
}

bool passesByCommandLine(const Sysfs& sysfs) {
  std::istringstream words(sysfs.line("/proc/cmdline").value_or(""));
  for (std::string word; words >> word;)
    if (word == "iommu=pt" || word == "iommu.passthrough=1" || word == "amd_iommu=pt") return true;
  return false;
}

// Little-endian, of a device's registers; 0 beyond what could be read.
uint32_t littleEndian(const std::string& registers, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes && at + i < registers.size(); ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(registers[at + i])) << (8 * i);
  return value;
}

// PCI Express Base Specification, "Access Control Services": an extended capability, of which the control register's
// bits 2 and 3 redirect requests and completions between peers.
bool redirects(const std::string& registers) {
  constexpr size_t kFirst = 0x100, kControl = 6;
  constexpr uint32_t kAcs = 0x000d, kRedirects = 0b1100;
  constexpr int kMost = 48;  // a list that bites its tail ends all the same
  size_t at = kFirst;
  for (int i = 0; i < kMost && at >= kFirst && at + 4 <= registers.size(); ++i) {
    const uint32_t head = littleEndian(registers, at, 4);
    if ((head & 0xffff) == kAcs) return (littleEndian(registers, at + kControl, 2) & kRedirects) != 0;
    at = head >> 20;
  }
  return false;
}

}  // namespace

IommuMode iommuMode(const Sysfs& sysfs) {
  if (!sysfs.has("/sys")) return IommuMode::kUnknown;
  if (sysfs.names("/sys/kernel/iommu_groups").empty()) return IommuMode::kOff;
  bool passes = true, told = false;
  for (const std::string& folder : talkers(sysfs))
    if (const auto type = sysfs.line(folder + "/iommu_group/type")) {
      told = true;
      passes = passes && *type == "identity";
    }
  if (!told) passes = passesByCommandLine(sysfs);
  return passes ? IommuMode::kPassthrough : IommuMode::kTranslates;
}

int acsRedirects(const Sysfs& sysfs) {
  constexpr size_t kAll = 4096, kForAll = 64;  // registers; others than root read the first
  int found = 0, bridges = 0, read = 0;
  for (const std::string& name : sysfs.names(kPci)) {
    if (!isBridge(sysfs, name)) continue;
    ++bridges;
    const std::string registers = sysfs.bytes(kPci + "/" + name + "/config", kAll);
    if (registers.size() > kForAll) ++read;
    if (redirects(registers)) ++found;
  }
  return bridges > 0 && read == 0 ? -1 : found;
}

int nvidiaGpus(const Sysfs& sysfs) {
  const auto names = sysfs.names(kPci);
  return static_cast<int>(
      std::count_if(names.begin(), names.end(), [&](const std::string& name) { return isNvidiaGpu(sysfs, name); }));
}

}  // namespace tutti::preflight
