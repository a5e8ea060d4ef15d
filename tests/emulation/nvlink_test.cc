// What joins the GPUs of a communicator, and what of it decides whether LL128 is used.
#include <gtest/gtest.h>

#include "device/device.h"
#include "device/gpu_links.h"
#include "emulation/control.h"
#include "emulation/gpu_ranks.h"
#include "emulation/handed_over.h"
#include "emulation/other_process.h"
#include "kernels/cuda/nvml.h"
#include "plan/device.h"

namespace tutti::test {
namespace {

using device::GpuLinkType;
using device::JointVerdict;
using device::JointView;
using device::Uuid;

Uuid emulated(uint8_t gpu) {
  emulation::setDeviceCount(3);
  const Uuid uuid = device::openDevice(gpu)->traits().uuid;
  emulation::setDeviceCount(1);
  return uuid;
}

// --- NVML ---

struct Seen {
  std::vector<GpuLinkType> joints;
  std::string why;
};

Seen seenFrom(uint8_t gpu, const char* library = "libnvidia-ml.so.1") {
  Seen seen;
  const std::vector<Uuid> all = {emulated(0), emulated(1), emulated(2)};
  seen.joints = cuda::jointsOf(all[gpu], all, seen.why, library);
  return seen;
}

TEST(Nvml, TellsNvlinkFromPcie) {
  const Settings set(std::vector<Setting>{{"TUTTI_TEST_NVLINK", "01,2"}});
  const Seen first = seenFrom(0), last = seenFrom(2);
  EXPECT_EQ(first.joints, (std::vector{GpuLinkType::kSameGpu, GpuLinkType::kNvlink, GpuLinkType::kPcie})) << first.why;
  EXPECT_EQ(last.joints, (std::vector{GpuLinkType::kPcie, GpuLinkType::kPcie, GpuLinkType::kSameGpu})) << last.why;
  EXPECT_EQ(first.why, "");
}

TEST(Nvml, GpusThatItDoesNotKnowAreUnknownAlone) {
  const Settings set(std::vector<Setting>{{"TUTTI_TEST_NVLINK", "02"}});
  const Seen seen = seenFrom(0);
  EXPECT_EQ(seen.joints, (std::vector{GpuLinkType::kSameGpu, GpuLinkType::kUnknown, GpuLinkType::kNvlink}));
  EXPECT_NE(seen.why.find("does not know " + cuda::nameOf(emulated(1)) + ": Not Found"), std::string::npos) << seen.why;
}

TEST(Nvml, WhereItDoesNotStartAllOthersAreUnknown) {
  const Seen seen = seenFrom(1);
  EXPECT_EQ(seen.joints, (std::vector{GpuLinkType::kUnknown, GpuLinkType::kSameGpu, GpuLinkType::kUnknown}));
  EXPECT_NE(seen.why.find("does not start: Driver Not Loaded"), std::string::npos) << seen.why;
}

TEST(Nvml, WhereItIsMissingAllOthersAreUnknown) {
  const Seen seen = seenFrom(1, "libthat-is-not-there.so.1");
  EXPECT_EQ(seen.joints, (std::vector{GpuLinkType::kUnknown, GpuLinkType::kSameGpu, GpuLinkType::kUnknown}));
  EXPECT_NE(seen.why.find("libthat-is-not-there.so.1"), std::string::npos) << seen.why;
}

TEST(Nvml, IsNotAskedAboutOneGpu) {
  const std::vector<Uuid> all(3, emulated(1));
  std::string why;
  EXPECT_EQ(cuda::jointsOf(all[0], all, why), std::vector(3, GpuLinkType::kSameGpu));
  EXPECT_EQ(why, "");
}

TEST(Nvml, CallsAGpuAsItsToolsDo) {
  Uuid uuid{};
  for (uint8_t i = 0; i < uuid.size(); ++i) uuid[i] = static_cast<uint8_t>(16 * i + 1);
  EXPECT_EQ(cuda::nameOf(uuid), "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
}

// --- the verdict ---

constexpr GpuLinkType kSame = GpuLinkType::kSameGpu, kNvlink = GpuLinkType::kNvlink, kPcie = GpuLinkType::kPcie,
                      kUnknown = GpuLinkType::kUnknown;

TEST(Joints, OneGpuNeedsNoWords) {
  const JointVerdict verdict = device::judge(std::vector<JointView>(3, {{kSame, kSame, kSame}, ""}));
  EXPECT_TRUE(verdict.linesMoveWhole);
  EXPECT_EQ(verdict.text, "");
}

TEST(Joints, NvlinkBetweenAllMovesLinesWhole) {
  const JointVerdict verdict = device::judge(std::vector<JointView>{
      {{kSame, kSame, kNvlink}, ""}, {{kSame, kSame, kNvlink}, ""}, {{kNvlink, kNvlink, kSame}, ""}});
  EXPECT_TRUE(verdict.linesMoveWhole);
  EXPECT_NE(verdict.text.find("NVLink joins all"), std::string::npos) << verdict.text;
}

// One of the two is enough: what only one rank knows must not split them.
TEST(Joints, OneDoubtOfOneRankIsEnough) {
  for (const GpuLinkType doubt : {kPcie, kUnknown}) {
    const JointVerdict verdict =
        device::judge(std::vector<JointView>{{{kSame, kNvlink}, ""}, {{doubt, kSame}, "the reason"}});
    EXPECT_FALSE(verdict.linesMoveWhole);
    EXPECT_NE(verdict.text.find("ranks 1 and 0"), std::string::npos) << verdict.text;
    EXPECT_EQ(verdict.text.find("the reason") != std::string::npos, doubt == kUnknown) << verdict.text;
  }
}

TEST(Joints, ARankThatDidNotLookIsADoubt) {
  EXPECT_FALSE(device::judge(std::vector<JointView>{{{kSame, kNvlink}, ""}, {}}).linesMoveWhole);
}

TEST(Joints, ViewsArriveAsTheyWere) {
  const JointView view{{kSame, kPcie, kUnknown}, "the reason"};
  const Bytes bytes = device::encode(view);
  const JointView arrived = device::decodeJoints(bytes);
  EXPECT_EQ(arrived.joints, view.joints);
  EXPECT_EQ(arrived.why, view.why);
  Bytes damaged = bytes;
  damaged[4] = std::byte{9};
  EXPECT_THROW(device::decodeJoints(damaged), Error);
  EXPECT_THROW(device::decodeJoints(std::span(bytes).first(5)), Error);
}

// --- what the plan makes of it ---

TEST(Joints, ThePlanLeavesLL128OutOverPcieUnlessItIsForced) {
  plan::DeviceMachine machine{.ranks = 8, .channels = 32};
  int taken = 0;
  for (const bool whole : {true, false}) {
    machine.linesMoveWhole = whole;
    for (size_t bytes = 8; bytes <= size_t{64} << 20; bytes *= 2) {
      const plan::Request request{Collective::kAllReduce, bytes};
      const bool takes = chooseDevice(request, machine, {}, {}, 0).protocol == Protocol::kLL128;
      taken += takes;
      EXPECT_TRUE(whole || !takes) << bytes;
      EXPECT_EQ(chooseDevice(request, machine, {}, Protocol::kLL128, 0).protocol, Protocol::kLL128);
    }
  }
  EXPECT_GT(taken, 0);
}

// --- communicators whose ranks have a GPU each ---

constexpr int kGpus = 3;

// Runs in a process of its own, whose log tells. It is handed the text that the log must have.
TEST(NvlinkProcess, DISABLED_ReducesAndTells) {
  const Bytes handed = emulation::handedOver();
  if (handed.empty()) GTEST_SKIP() << "runs only as a process of another test";
  const std::string wanted(reinterpret_cast<const char*>(handed.data()), handed.size());
  emulation::setDeviceCount(kGpus);
  ::testing::internal::CaptureStderr();
  std::string fault;
  {
    const GpuRanks gpu({0, 1, 2}, {{"TUTTI_CHANNELS", "2"}});
    for (const size_t count : {size_t{3}, size_t{1000}, size_t{20'000}, size_t{200'000}}) {
      faults::Operation operation;
      operation.kind = faults::Kind::kAllReduce;
      operation.count = count;
      operation.type = tuttiFloat32;
      fault += gpu.run(operation);
    }
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(fault, "");
  const size_t found = log.find(wanted);
  EXPECT_NE(found, std::string::npos) << log;
  const bool chosen = log.find("over ll128") != std::string::npos;
  EXPECT_EQ(chosen, std::getenv("TUTTI_TEST_LL128") != nullptr) << log;
}

void expectTold(const std::string& wanted, std::vector<std::string> settings) {
  settings.push_back("TUTTI_DEBUG=info");
  settings.push_back(emulation::handing(std::as_bytes(std::span(wanted))));
  EXPECT_EQ(emulation::statusOfOtherProcess("NvlinkProcess.DISABLED_ReducesAndTells", settings), 0) << wanted;
}

TEST(Nvlink, BetweenAllGpusLetsThePlanTakeLL128) {
  expectTold("NVLink joins all GPUs", {"TUTTI_TEST_NVLINK=012", "TUTTI_TEST_LL128=1"});
}

TEST(Nvlink, OnePairOverPcieLeavesLL128Out) {
  expectTold("PCIe, and not NVLink, joins the GPUs of ranks 0 and 2", {"TUTTI_TEST_NVLINK=01,2"});
}

TEST(Nvlink, OnePairThatIsNotKnownLeavesLL128Out) {
  expectTold("joins the GPUs of ranks 0 and 1 (NVML does not know GPU-", {"TUTTI_TEST_NVLINK=02"});
}

TEST(Nvlink, WithoutNvmlLL128IsLeftOut) {
  expectTold("joins the GPUs of ranks 0 and 1 (NVML does not start: Driver Not Loaded (9))", {});
}

TEST(Nvlink, LL128CanBeForcedAllTheSame) {
  expectTold("LL128 is used only where TUTTI_PROTOCOL says so",
             {"TUTTI_TEST_NVLINK=0,1,2", "TUTTI_TEST_LL128=1", "TUTTI_PROTOCOL=ll128"});
}

}  // namespace
}  // namespace tutti::test
