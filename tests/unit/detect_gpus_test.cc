// GPUs as NVML tells them: one of the tests' own, that knows several machines.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "catalog/known_systems.h"
#include "detect/gpus.h"
#include "detect/machine_at_hand.h"
#include "exchange/hwloc_xml.h"
#include "unit/machine_tree.h"
#include "unit/topology_facts.h"

namespace tutti::detect {
namespace {

// Beside this program.
std::string nvmlOfTests(const char* name = "tutti_test_nvml.so") {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

class DetectedGpus : public MachineTree {
 protected:
  void TearDown() override {
    ::unsetenv("TUTTI_TEST_BOX");
    MachineTree::TearDown();
  }
  std::vector<SeenGpu> seen(const char* box, const std::string& library = nvmlOfTests()) {
    ::setenv("TUTTI_TEST_BOX", box, 1);
    return seenByNvml(library.c_str(), remarks_);
  }
  // With GPUs where that NVML has them, in a host that has so many.
  System machine(const char* box, int gpus, const std::string& library = nvmlOfTests()) const {
    ::setenv("TUTTI_TEST_BOX", box, 1);
    System host = oneNode();
    for (int i = 0; i < gpus; ++i) {
      const int gpu = addDevice(host, DeviceKind::kGpu, 0, "0000:1" + std::to_string(i) + ":00.0");
      host.devices[gpu].pci->classCode = "0x030200";
      host.devices[gpu].pci->vendor = "0x10de";
    }
    return detectSystem({writeHwlocXml(host), root_, library.c_str()});
  }

  std::vector<std::string> remarks_;
};

TEST_F(DetectedGpus, OfABoxWithSwitches) {
  const auto gpus = seen("switches");
  ASSERT_EQ(gpus.size(), 8u);
  EXPECT_EQ(gpus[3].busId, "0000:13:00.0");
  EXPECT_EQ(gpus[3].gpu.number, 3);
  EXPECT_EQ(gpus[3].gpu.sm, 80);
  ASSERT_EQ(gpus[3].gpu.nvlinks.size(), 6u);
  EXPECT_EQ(gpus[3].gpu.nvlinks[1].target, "0000:c1:00.0");
  EXPECT_EQ(gpus[3].gpu.nvlinks[1].count, 2);
  EXPECT_EQ(gpus[3].gpu.nvlinks[1].targetClass, "0x068000");
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(DetectedGpus, AreOneSystemWithTheirSwitches) {
  const System system = machine("switches", 8);
  EXPECT_EQ(countOf(system, DeviceKind::kNvSwitch), 6u);
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 7"), "NVL");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "GPU 7"), 12 * 20.0);
}

TEST_F(DetectedGpus, OfAPairThatIsLinkedDirectly) {
  const System system = machine("pair", 2);
  EXPECT_EQ(countOf(system, DeviceKind::kNvSwitch), 0u);
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "GPU 1"), 3 * 20.0);
  EXPECT_EQ(timesSaid(system.remarks, "GPU 0 (0000:10:00.0): 1 of its NVLinks are down"), 1);
}

TEST_F(DetectedGpus, OneThatHasFailedIsNoReasonToSeeNone) {
  const System system = machine("lost", 3);
  EXPECT_EQ(countOf(system, DeviceKind::kGpu), 3u);
  EXPECT_EQ(timesSaid(system.remarks, "NVML does not show GPU 1: GPU is lost (15)"), 1);
  EXPECT_EQ(timesSaid(system.remarks, "NVML does not show GPU 0000:11:00.0: it has failed, or"), 1);
  EXPECT_GE(deviceNamed(system, "GPU 2"), 0);
}

TEST_F(DetectedGpus, BehindAHiddenFabric) {
  const System system = machine("hidden", 2);
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "NVL");
  EXPECT_GE(deviceNamed(system, "hidden fabric"), 0);
}

TEST_F(DetectedGpus, WhoseLinksLeadWhereNobodyKnows) {
  const auto gpus = seen("unclear");
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].gpu.nvlinks[0].count, 4);
  EXPECT_EQ(timesSaid(remarks_, "GPU 0 (0000:10:00.0): NVML does not tell where 2 of its NVLinks lead"), 1);
}

TEST_F(DetectedGpus, ThatTheKernelDoesNotShowAreAdded) {
  const System system = machine("pair", 0);
  EXPECT_EQ(countOf(system, DeviceKind::kGpu), 2u);
  EXPECT_EQ(timesSaid(system.remarks, "0000:11:00.0: a GPU that the kernel does not show"), 1);
}

TEST_F(DetectedGpus, AreKnownByTheKernelWhereNvmlIsNotToBeHad) {
  const System missing = machine("pair", 2, "/nowhere/libnvidia-ml.so.1");
  EXPECT_EQ(countOf(missing, DeviceKind::kGpu), 2u);
  EXPECT_EQ(timesSaid(missing.remarks, "NVML is missing: /nowhere/libnvidia-ml.so.1"), 1);
  const System stopped = machine("no such box", 2);
  EXPECT_EQ(timesSaid(stopped.remarks, "NVML does not start: Driver Not Loaded (9): GPUs' numbers"), 1);
  const System old = machine("pair", 2, nvmlOfTests("tutti_test_old_nvml.so"));
  EXPECT_EQ(timesSaid(old.remarks, "NVML has no nvmlDeviceGetNvLinkState: install a newer driver"), 1);
}

TEST_F(DetectedGpus, NvmlIsNotMissedWhereThereAreNone) {
  const System system = machine("pair", 0, "/nowhere/libnvidia-ml.so.1");
  EXPECT_EQ(timesSaid(system.remarks, "NVML"), 0);
}

}  // namespace
}  // namespace tutti::detect
