#include "device/gpu_links.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::device {
namespace {

GpuLinkType jointOf(const JointView& view, size_t rank) {
  return rank < view.joints.size() ? view.joints[rank] : GpuLinkType::kUnknown;
}

std::string leftOut(GpuLinkType joint, size_t one, size_t other, const std::string& why) {
  const std::string what =
      joint == GpuLinkType::kPcie
          ? fmt::format("PCIe, and not NVLink, joins the GPUs of ranks {} and {}", one, other)
          : fmt::format("nothing tells what joins the GPUs of ranks {} and {} ({})", one, other, why);
  return fmt::format("{}: LL128 is used only where TUTTI_PROTOCOL says so", what);
}

}  // namespace

Bytes encode(const JointView& view) {
  return Writer().block(std::as_bytes(std::span(view.joints))).text(view.why).take();
}

JointView decodeJoints(std::span<const std::byte> bytes) {
  Reader in(bytes);
  JointView view;
  for (const std::byte joint : in.block()) {
    if (joint > static_cast<std::byte>(GpuLinkType::kSameGpu))
      throw Error(ErrorCode::kRemote, "a rank told of its GPU what none tells: do all ranks run the same tutti?");
    view.joints.push_back(static_cast<GpuLinkType>(joint));
  }
  view.why = in.text();
  return view;
}

JointVerdict judge(std::span<const JointView> views) {
  bool several = false;
  for (size_t one = 0; one < views.size(); ++one)
    for (size_t other = 0; other < views.size(); ++other) {
      const GpuLinkType joint = jointOf(views[one], other);
      if (joint < GpuLinkType::kNvlink) return {false, leftOut(joint, one, other, views[one].why)};
      several = several || joint != GpuLinkType::kSameGpu;
    }
  return {true, several ? "NVLink joins all GPUs: LL128 may be used" : ""};
}

}  // namespace tutti::device
