#include <fmt/format.h>

#include <algorithm>

#include "preflight/finders.h"

namespace tutti::preflight {
namespace {

std::string bytesText(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30) return fmt::format("{:.1f} GiB", double(bytes) / double(uint64_t{1} << 30));
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

// A link over RDMA locks half a MiB a direction; what is less than some dozen links is soon used up.
void findLocked(const Reports& reports, Findings& findings) {
  constexpr uint64_t kEnough = 64 << 20;
  Together low;
  for (const HostReport& one : reports)
    if (!one.rdma.empty() && one.limits.lockedBytes < kEnough)
      low.add(fmt::format("{} of memory may be locked, and each link over RDMA locks 1 MiB: links would go over TCP",
                          bytesText(one.limits.lockedBytes)),
              one.host);
  low.tell(Severity::kWarning,
           "Raise the limit: `ulimit -l unlimited`, `memlock` in /etc/security/limits.conf, LimitMEMLOCK=infinity of "
           "the service that starts the job, --ulimit memlock=-1 of a container",
           findings);
}

uint64_t ranksOf(const Reports& reports) {
  uint64_t ranks = 0;
  for (const HostReport& one : reports) ranks += static_cast<uint64_t>(one.ranks);
  return ranks;
}

// Each link of a rank has a socket or two, beside what the control plane and the program have open.
void findFiles(const Reports& reports, Findings& findings) {
  constexpr uint64_t kProgram = 256, kEach = 4;
  const uint64_t wanted = kProgram + kEach * ranksOf(reports);
  Together low;
  for (const HostReport& one : reports) {
    const Limits& limits = one.limits;
    if (limits.openFiles == 0 || limits.openFiles >= wanted) continue;
    const std::string more = limits.openFilesAtMost > limits.openFiles && limits.openFilesAtMost != Limits::kUnlimited
                                 ? fmt::format(", and may be raised to {}", limits.openFilesAtMost)
                                 : "";
    low.add(fmt::format("a process may have {} open files{}; a rank of this job may want {}", limits.openFiles, more,
                        wanted),
            one.host);
  }
  low.tell(Severity::kWarning,
           "Raise the limit: `ulimit -n`, `nofile` in /etc/security/limits.conf, LimitNOFILE= of the service that "
           "starts the job",
           findings);
}

void findCores(const Reports& reports, Findings& findings) {
  Together low;
  for (const HostReport& one : reports)
    if (one.limits.cores > 0 && one.limits.cores < one.ranks)
      low.add(fmt::format("the control group grants {:.1f} processors to {} ranks: they wait for each other in turns",
                          one.limits.cores, one.ranks),
              one.host);
  low.tell(Severity::kWarning, "Give the container more processors, or start fewer ranks", findings);
}

void findMemory(const Reports& reports, Findings& findings) {
  constexpr uint64_t kLeast = uint64_t{256} << 20;  // a rank's links and buffers, and little else
  Together low;
  for (const HostReport& one : reports) {
    const uint64_t bytes = one.limits.memoryBytes;
    if (bytes != 0 && bytes / static_cast<uint64_t>(std::max(1, one.ranks)) < kLeast)
      low.add(fmt::format("the control group leaves {} of memory to {} rank{}", bytesText(bytes), one.ranks,
                          one.ranks == 1 ? "" : "s"),
              one.host);
  }
  low.tell(Severity::kHint, "Give the container more memory if ranks are killed", findings);
}

bool hasBoth(const HostReport& one) { return one.nvidiaGpus > 0 && !one.rdma.empty(); }

void findDetours(const Reports& reports, Findings& findings) {
  Together translated, redirected;
  for (const HostReport& one : reports) {
    if (!hasBoth(one)) continue;
    if (one.iommu == IommuMode::kTranslates)
      translated.add(
          "the IOMMU translates what RDMA devices and GPUs tell each other, which takes it by way of the processor",
          one.host);
    if (one.acsRedirects > 0)
      redirected.add(fmt::format("{} PCI bridges send what devices below them tell each other by way of the processor "
                                 "(ACS)",
                                 one.acsRedirects),
                     one.host);
  }
  translated.tell(Severity::kHint,
                  "Where the host runs no virtual machines, switch it off in the firmware or boot with iommu=pt",
                  findings);
  redirected.tell(Severity::kHint,
                  "Where the host runs no virtual machines, switch ACS off: in the firmware, or with `setpci -s BRIDGE "
                  "ECAP_ACS+6.w=0000` at each start",
                  findings);
}

}  // namespace

void findLimits(const Reports& reports, Findings& findings) {
  findLocked(reports, findings);
  findFiles(reports, findings);
  findCores(reports, findings);
  findMemory(reports, findings);
  findDetours(reports, findings);
}

void findOddOnes(const Reports& reports, Findings& findings) {
  constexpr int64_t kSkewMs = 2000;
  if (reports.size() < 2) return;
  std::vector<std::string> versions;
  std::vector<int64_t> clocks;
  for (const HostReport& one : reports) {
    versions.push_back(one.version);
    clocks.push_back(one.clockMs);
  }
  const std::string usual = mostCommon(versions);
  std::ranges::nth_element(clocks, clocks.begin() + static_cast<ptrdiff_t>(clocks.size() / 2));
  const int64_t middle = clocks[clocks.size() / 2];
  for (const HostReport& one : reports) {
    if (one.version != usual)
      findings.push_back({Severity::kWarning, one.host,
                          fmt::format("it runs tutti {}, the others {}", one.version, usual),
                          "Install the same version on all hosts"});
    const int64_t skew = one.clockMs - middle;
    if (skew > kSkewMs || skew < -kSkewMs)
      findings.push_back({Severity::kHint, one.host,
                          fmt::format("its clock is {:.1f} s {} the others'", double(skew > 0 ? skew : -skew) / 1000,
                                      skew > 0 ? "before" : "behind"),
                          "Set it (chrony, ntpd): logs and records of its ranks do not line up with those of others"});
  }
}

}  // namespace tutti::preflight
