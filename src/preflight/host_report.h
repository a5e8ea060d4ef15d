// What one host has and allows that matters to a job across hosts: a plain struct, and how it is told to other ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "topology/system.h"

namespace tutti::preflight {

// An address of an interface, with the length of its network's part.
struct NetAddress {
  std::string ip;
  int prefix = 0;
  friend bool operator==(const NetAddress&, const NetAddress&) = default;
};

struct InterfaceReport {
  std::string name;
  std::string state;      // the kernel's word: "up", "down", "lowerlayerdown", "unknown"
  bool isUp = false;      // packets may pass, as far as the kernel tells
  bool isDevice = false;  // hardware is behind it, or a virtual function
  bool isLoopback = false;
  int use = -1;                   // the how-manieth of those whose addresses are told to other ranks; -1: none of them
  int64_t mtu = 0, megabits = 0;  // 0: unknown
  std::vector<NetAddress> addresses;
  friend bool operator==(const InterfaceReport&, const InterfaceReport&) = default;
};

struct RdmaPortReport {
  std::string device;
  int number = 0;
  std::string state;      // "ACTIVE", "DOWN", "INIT"
  std::string physical;   // "LinkUp", "Polling", "Disabled"
  std::string layer;      // "InfiniBand" or "Ethernet"
  std::string interface;  // the network interface of its addresses, if it has one
  bool isMeant = true;    // by TUTTI_IB_HCA
  int64_t megabits = 0;   // 0: unknown
  std::vector<topology::Gid> gids;
  friend bool operator==(const RdmaPortReport&, const RdmaPortReport&) = default;

  bool isActive() const { return state == "ACTIVE"; }
  bool isRoce() const { return layer == "Ethernet"; }
  std::string name() const { return device + ":" + std::to_string(number); }
};

enum class IommuMode : uint8_t { kUnknown, kOff, kPassthrough, kTranslates };

// Numbers: 0 where unknown, kUnlimited where there is no limit.
struct Limits {
  static constexpr uint64_t kUnlimited = ~uint64_t{0};
  uint64_t lockedBytes = 0;                     // what may be locked (ulimit -l)
  uint64_t openFiles = 0, openFilesAtMost = 0;  // ulimit -n, and how far it may be raised
  uint64_t memoryBytes = 0;                     // that the control groups leave this process
  uint64_t sharedMemoryBytes = 0;               // the size of /dev/shm
  double cores = 0;                             // whose time the control groups leave this process; 0: no limit
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct HostReport {
  std::string host;     // its name, which others may have as well: see tellApart()
  std::string version;  // of tutti
  std::string kernel;
  uint64_t hostId = 0;  // as topology::PeerInfo has it
  int firstRank = 0;    // that reports; -1: this process is of no job
  int ranks = 1;        // of the job on this host
  int64_t clockMs = 0;  // the host's time of day when the report was made, since 1970
  bool asRoot = false;  // what only root may read has been read
  IommuMode iommu = IommuMode::kUnknown;
  int acsRedirects = -1;  // PCI bridges that send what devices tell each other by way of the processor; -1: unknown
  int nvidiaGpus = 0;
  Limits limits;
  int gidIndex = -1;       // TUTTI_IB_GID_INDEX; -1: chosen
  std::string lacksVerbs;  // why verbs cannot be used here at all, in the transport's words
  std::vector<InterfaceReport> interfaces;
  std::vector<RdmaPortReport> rdma;
  friend bool operator==(const HostReport&, const HostReport&) = default;
};

// Hosts of one name, such as containers, get that of their first rank behind it: "n2#3".
void tellApart(std::vector<HostReport>& reports);

// Of very many interfaces, addresses and ports the first. Texts are shortened.
Bytes encode(const HostReport& report);
HostReport decodeHostReport(std::span<const std::byte> bytes);  // throws Error(kRemote) for bytes that are none

}  // namespace tutti::preflight
