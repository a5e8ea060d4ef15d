// Communicators on GPUs whose links a file describes (TUTTI_TOPO_FILE): rings and trees go along them, and all that is
// computed that way is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "catalog/known_systems.h"
#include "emulation/control.h"
#include "emulation/gpu_ranks.h"
#include "emulation/other_process.h"
#include "emulation/pinned_memory.h"
#include "exchange/nccl_xml.h"

namespace tutti::test {
namespace {

constexpr const char* kMesh = "azure-ndv2";
const std::vector<size_t> kMeshCounts = kSanitized ? std::vector<size_t>{33} : std::vector<size_t>{1, 5'000};

// As `tutti-topo make azure-ndv2` writes it.
class MeshFile {
 public:
  explicit MeshFile(const std::string& text) { std::ofstream(path_) << text; }
  ~MeshFile() { std::filesystem::remove(path_); }
  MeshFile(const MeshFile&) = delete;
  MeshFile& operator=(const MeshFile&) = delete;
  std::string setting() const { return "TUTTI_TOPO_FILE=" + path_.string(); }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / fmt::format("tutti-emulated-mesh-{}.xml", ::getpid());
};

std::string meshText() { return writeNcclXml(topology::makeKnownSystem(kMesh)); }

// The emulated devices sit where those of the mesh do.
void becomeTheMesh() {
  const topology::System system = topology::makeKnownSystem(kMesh);
  std::vector<std::string> ids;
  for (const int gpu : byNumber(system, topology::DeviceKind::kGpu)) ids.push_back(system.devices[gpu].pci->busId);
  emulation::setBusIds(ids);
  emulation::setDeviceCount(static_cast<int>(ids.size()));
}

std::string explained(tuttiComm_t comm) {
  char text[8192];
  CHECK_TUTTI(tuttiCommExplain(comm, "all-reduce", 1 << 24, tuttiFloat32, text, sizeof text));
  return text;
}

void expectExplained(const GpuRanks& gpu, const std::string& order) {
  for (int rank = 0; rank < gpu.size(); ++rank) {
    const std::string text = explained(gpu[rank]);
    EXPECT_NE(text.find("\nring order: " + order), std::string::npos) << text;
  }
}

// Every operation, by what goes along the order and by what is chosen.
void expectRight(const std::vector<int>& devices, const std::string& order, std::vector<Setting> settings = {}) {
  const InPinnedMemory memory;  // for streams
  for (const char* const algorithm : {"ring", "tree", ""})
    for (const char* const way : {"simple", "ll", "stream"}) {
      auto all = settingsOf(way) + settings;
      if (*algorithm != '\0') all.emplace_back("TUTTI_ALGO", algorithm);
      const GpuRanks gpu(devices, all);
      expectExplained(gpu, order);
      for (const faults::Operation& operation : everyKind(gpu.size(), kMeshCounts))
        ASSERT_EQ(gpu.run(operation), "") << algorithm << " by " << way << " among " << gpu.size();
    }
}

// --- each in a process of its own, whose devices sit there before they are opened ---

TEST(MeshProcess, DISABLED_AllGpus) {
  becomeTheMesh();
  expectRight({0, 1, 2, 3, 4, 5, 6, 7}, "by the NVLinks: 0 3 2 1 5 6 7 4 (40.0 GB/s to the next");
}

TEST(MeshProcess, DISABLED_SomeGpusInAnyOrder) {
  becomeTheMesh();
  expectRight({0, 5, 4, 1}, "by the NVLinks: 0 2 1 3 (20.0 GB/s to the next");
}

TEST(MeshProcess, DISABLED_RanksThatShareGpus) {
  becomeTheMesh();
  expectRight({0, 1, 0, 1}, "by the GPUs: 0 2 1 3 (");
}

// Of such hosts each has its own order, and is entered and left once. All is in one process, whose hosts are groups.
TEST(MeshProcess, DISABLED_Groups) {
  becomeTheMesh();
  expectRight({0, 1, 2, 3, 4, 5, 6, 7}, "by the NVLinks: 0 3 2 1 5 6 7 4 (", {{"TUTTI_GROUP_SIZE", "4"}});
}

TEST(MeshProcess, DISABLED_AFileOfNoUse) {
  becomeTheMesh();
  ::testing::internal::CaptureStderr();
  std::string fault;
  {
    const GpuRanks gpu({0, 1, 2}, {{"TUTTI_CHANNELS", "2"}});
    expectExplained(gpu, "by the numbers of the ranks; not by the links of ");
    for (const faults::Operation& operation : everyKind(gpu.size(), {300})) fault += gpu.run(operation);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(fault, "");
  const std::string warning = std::string("TUTTI_TOPO_FILE=") + std::getenv("TUTTI_TOPO_FILE") + " is not used";
  const size_t first = log.find(warning);
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(warning, first + 1), std::string::npos) << log;
}

int statusWith(const std::string& test, const std::string& text) {
  const MeshFile file(text);
  return emulation::statusOfOtherProcess("MeshProcess.DISABLED_" + test, {file.setting()});
}

TEST(Mesh, RingsGoAlongTheNvlinks) { EXPECT_EQ(statusWith("AllGpus", meshText()), 0); }
TEST(Mesh, AmongSomeGpus) { EXPECT_EQ(statusWith("SomeGpusInAnyOrder", meshText()), 0); }
TEST(Mesh, RanksOfAGpuStayTogether) { EXPECT_EQ(statusWith("RanksThatShareGpus", meshText()), 0); }
TEST(Mesh, GroupsHaveTheirOrders) { EXPECT_EQ(statusWith("Groups", meshText()), 0); }

TEST(Mesh, AHostileFileIsWarnedOfAndNoMore) {
  std::string bomb = "<!DOCTYPE s [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><system version=\"&b;\"/>";
  EXPECT_EQ(statusWith("AFileOfNoUse", bomb), 0);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<pci busid=\"0000:00:00.0\">";
  EXPECT_EQ(statusWith("AFileOfNoUse", "<system version=\"1\">" + deep), 0);
}

}  // namespace
}  // namespace tutti::test
