#include "topo/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "drawing/labels.h"
#include "topology/paths.h"
#include "topology/warnings.h"

namespace tutti::topo {
namespace {

using topology::byNumber;
using topology::DeviceKind;
using topology::System;

using drawing::deviceText;

void addTree(const System& system, int device, const std::string& indent, std::string& text) {
  text += fmt::format("{}{}\n", indent, deviceText(system, device));
  for (const int child : childrenOf(system, device))
    if (system.devices[child].kind != DeviceKind::kPort) addTree(system, child, indent + "  ", text);
}

// NVSwitches that stand beside the tree.
std::string fabricText(const System& system) {
  std::string text;
  for (const int plane : devicesOf(system, DeviceKind::kNvSwitch))
    text += fmt::format("{}  {} NVLinks\n", nameOf(system, plane), drawing::nvlinksOf(system, plane));
  return text;
}

struct End {
  int device;
  std::string label;  // "G3", "N0"
};

std::vector<End> endsOf(const System& system) {
  std::vector<End> ends;
  for (const int gpu : byNumber(system, DeviceKind::kGpu)) ends.push_back({gpu, fmt::format("G{}", ends.size())});
  const size_t gpus = ends.size();
  for (const int nic : byNumber(system, DeviceKind::kNic))
    ends.push_back({nic, fmt::format("N{}", ends.size() - gpus)});
  return ends;
}

// Rows are GPUs and NICs, columns the same under labels.
std::string matrixText(const System& system) {
  const std::vector<End> ends = endsOf(system);
  if (ends.size() < 2) return "";
  const topology::Paths paths(system);
  size_t widest = 0;
  for (const End& end : ends) widest = std::max(widest, nameOf(system, end.device).size());
  std::string text = fmt::format("{:{}}", "", widest + 4);
  for (const End& end : ends) text += fmt::format(" {:>3}", end.label);
  for (const End& row : ends) {
    text += fmt::format("\n{:<3} {:{}}", row.label, nameOf(system, row.device), widest);
    for (const End& column : ends)
      text += fmt::format(" {:>3}",
                          row.device == column.device ? "-" : nameOf(paths.between(row.device, column.device).type));
  }
  return text + "\n";
}

std::string section(const std::string& text) { return text.empty() ? "" : "\n" + text; }

}  // namespace

std::string showText(const System& system) {
  std::string text;
  for (const int node : devicesOf(system, DeviceKind::kNuma)) addTree(system, node, "", text);
  text += section(fabricText(system)) + section(matrixText(system));
  std::string notes;
  for (const std::string& remark : system.remarks) notes += fmt::format("remark: {}\n", remark);
  for (const std::string& warning : warningsOf(system)) notes += fmt::format("warning: {}\n", warning);
  return text + section(notes);
}

}  // namespace tutti::topo
