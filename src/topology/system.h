// A machine, or several that share a fabric: its memory nodes, PCI switches, GPUs, NVSwitches and NICs, and the links
// between them with their bandwidth.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::topology {

enum class DeviceKind : uint8_t { kNuma, kPci, kGpu, kNvSwitch, kNic, kPort };

// What a file says and this version does not know: kept, so that nothing is lost when it is written again.
struct Extras {
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<std::string> elements;  // each the text of an XML element
  friend bool operator==(const Extras&, const Extras&) = default;
};

// A memory node with its cores.
struct Numa {
  int number = -1;           // the system's; -1 where it is unknown
  std::string affinity;      // mask of processing units, hexadecimal in groups of 32 ("00000000,000fffff")
  std::string arch, vendor;  // "x86_64", "GenuineIntel"
  int family = 0, model = 0;
  std::string host;  // in a file of several hosts, what tells them apart
  Extras extras;
  friend bool operator==(const Numa&, const Numa&) = default;
};

// From a switch to another, beside the tree.
struct PciPeer {
  std::string target;  // a bus id
  Extras extras;
  friend bool operator==(const PciPeer&, const PciPeer&) = default;
};

// What every device on the bus has: where it sits, what it is, and its link towards the processor.
struct Pci {
  std::string busId;      // "0000:3b:00.0"
  std::string classCode;  // "0x030200"; "" where unknown, as are the next four
  std::string vendor, device, subsystemVendor, subsystemDevice;
  std::string speed;  // "16.0 GT/s PCIe", or "" where unknown
  int width = 0;      // lanes; 0 where unknown
  std::vector<PciPeer> peers;
  Extras extras;
  friend bool operator==(const Pci&, const Pci&) = default;
};

// NVLinks from a GPU to one device.
struct NvLinks {
  std::string target;  // a bus id
  int count = 0;
  std::string targetClass;  // as Pci::classCode
  Extras extras;
  friend bool operator==(const NvLinks&, const NvLinks&) = default;
};

// A coherent link to the GPU's own processor.
struct C2c {
  int megabytesPerSecond = 0;  // of one
  int count = 0;
  Extras extras;
  friend bool operator==(const C2c&, const C2c&) = default;
};

struct Gpu {
  int number = -1;  // in its host; -1 where unknown
  int sm = 0;       // 90 for compute capability 9.0; 0 where unknown
  std::optional<int> rank;
  std::optional<bool> direct;  // whether NICs can read its memory
  std::vector<NvLinks> nvlinks;
  std::vector<C2c> c2c;
  Extras extras;
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Nic {
  Extras extras;
  friend bool operator==(const Nic&, const Nic&) = default;
};

// An address of an RDMA port.
struct Gid {
  int index = 0;
  std::string address;  // "fe80:0000:0000:0000:0202:c9ff:fe00:0001"
  std::string type;     // "IB/RoCE v1" or "RoCE v2"; "" where unknown
  friend bool operator==(const Gid&, const Gid&) = default;
};

// A NIC's way into the network.
struct Port {
  std::string name;      // "mlx5_0"
  int number = -1;       // in its host; -1 where unknown
  int64_t megabits = 0;  // a second; 0 where unknown
  int ofNic = -1;        // which of the NIC's ports, from 1 on; -1 where unknown
  std::string guid;      // of an RDMA device ("0x506b4b0300f3a1c2"); "" where unknown
  std::string layer;     // "InfiniBand" or "Ethernet" of an RDMA port; "" where unknown
  std::vector<Gid> gids;
  std::optional<bool> direct;
  Extras extras;
  friend bool operator==(const Port&, const Port&) = default;
};

// `numa` is there for a memory node, `port` for a port; `pci` for all others but a NIC that a file has directly below a
// memory node; `gpu` and `nic` for these, unless a partial file says nothing of them but their place on the bus.
struct Device {
  DeviceKind kind = DeviceKind::kPci;
  int parent =
      -1;  // position in System::devices, less than the own; -1 for memory nodes and what stands beside the tree
  std::optional<Numa> numa;
  std::optional<Pci> pci;
  std::optional<Gpu> gpu;
  std::optional<Nic> nic;
  std::optional<Port> port;
  friend bool operator==(const Device&, const Device&) = default;
};

enum class LinkKind : uint8_t { kInternal, kPci, kNvLink, kC2c, kSockets, kNetwork };

// Both ways the same.
struct Link {
  int a = 0, b = 0;  // positions in System::devices
  LinkKind kind = LinkKind::kPci;
  double gigabytes = 0;  // a second
  int count = 1;         // of NVLinks or C2C links
  friend bool operator==(const Link&, const Link&) = default;
};

// A value. Made by a reader or a generator, which adds the devices and calls connect(); then plain data.
struct System {
  std::string version = "1";  // of NCCL's format
  Extras extras;
  std::vector<Device> devices;  // who is below another comes after it
  std::vector<Link> links;
  std::vector<std::string> remarks;  // what was missing or odd, and what was assumed instead
  friend bool operator==(const System&, const System&) = default;
};

// More than any machine or rack has, and few enough that all pairs of them can be looked at.
inline constexpr size_t kMostDevices = 1024, kMostNumaNodes = 256;

// Makes the links of a system that has devices only, and adds the NVSwitches that NVLinks lead to. What it has to
// assume for that it adds to the remarks. Throws Error(kInvalidArgument) where there are too many devices, two have one
// bus id, or a switch is linked with itself or with what is above or below it.
void connect(System& system);

// "GPU 3", "mlx5_0", "NUMA 1", or else a bus id: for texts. Of a file's names, what a terminal can take.
std::string nameOf(const System& system, int device);

// The memory node above a device, or itself; -1 where none is.
int numaOf(const System& system, int device);

// What a device with that class code is ("0x030200"), as NCCL and RCCL take it; a switch where it is unknown.
DeviceKind kindOfClass(std::string_view classCode);

std::vector<int> devicesOf(const System& system, DeviceKind kind);
std::vector<int> childrenOf(const System& system, int device);
// Those of a kind by host, and there by number: a GPU's, a port's, or that of a NIC's first port.
std::vector<int> byNumber(const System& system, DeviceKind kind);

// How many its mask names; 0 where it has none.
int processingUnitsOf(const Numa& numa);

}  // namespace tutti::topology
