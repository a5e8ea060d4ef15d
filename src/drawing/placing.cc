#include "drawing/placing.h"

#include <algorithm>
#include <map>

#include "base/plain_text.h"
#include "drawing/labels.h"

namespace tutti::drawing {
namespace {

using topology::DeviceKind;
using topology::System;

constexpr double kGpuWidth = 104, kNicWidth = 122, kTrunk = 16, kSwitchWidth = 112, kNodeWidth = 210;
constexpr double kGap = 16, kDrop = 36, kPadding = 12, kHostGap = 24, kHostHead = 30, kSockets = 46, kNicGap = 6;
constexpr size_t kMostInStack = 6, kLongestHost = 48;

double heightOf(size_t lines) { return 10 + 13 * static_cast<double>(lines); }

// What stands side by side below a device: a switch with its own, a GPU, or a stack of NICs.
struct Column {
  std::vector<int> devices;  // several are NICs
  double width = 0;
};

class Making {
 public:
  Making(const System& system, const Shown& shown, double top) : system_(system), shown_(shown), top_(top) {
    placing_.boxes.resize(system.devices.size());
    placing_.panels.resize(system.devices.size());
    below_.resize(system.devices.size());
    widths_.resize(system.devices.size());
  }
  Placing run();

 private:
  DeviceKind kind(int device) const { return system_.devices[device].kind; }
  bool isLeaf(int device) const { return kind(device) == DeviceKind::kGpu || kind(device) == DeviceKind::kNic; }
  double boxHeight(int device) const { return heightOf(boxLines(system_, device).size()); }
  void measure(int device, size_t level);
  void addColumn(int parent, int child);
  double stackHeight(const Column& column) const;
  void findRows();
  void place(int device, double left, size_t level);
  void placeLeaves(const Column& column, double left);
  void placeHost(Host& host, double& left);
  void group();

  const System& system_;
  const Shown& shown_;
  double top_;
  Placing placing_;
  std::vector<std::vector<Column>> below_;  // of each device
  std::vector<double> widths_;              // of each, with what is below
  std::vector<double> rowHeights_;          // of memory nodes, and of each level of switches
  std::vector<double> rows_;                // their tops
  double leafHeight_ = 0, leafBottom_ = 0;
};

// NICs go into one stack, where the first of them is, until it is full.
void Making::addColumn(int parent, int child) {
  std::vector<Column>& columns = below_[parent];
  const auto hasRoom = [&](const Column& one) {
    return kind(one.devices[0]) == DeviceKind::kNic && one.devices.size() < kMostInStack;
  };
  const auto stack = std::ranges::find_if(columns, hasRoom);
  if (kind(child) == DeviceKind::kNic && stack != columns.end()) return stack->devices.push_back(child);
  const double leaf = kind(child) == DeviceKind::kNic ? kNicWidth + kTrunk : kGpuWidth;
  columns.push_back({{child}, isLeaf(child) ? leaf : widths_[child]});
}

double Making::stackHeight(const Column& column) const {
  double height = 0;
  for (const int each : column.devices) height += boxHeight(each) + (height > 0 ? kNicGap : 0);
  return height;
}

void Making::measure(int device, size_t level) {
  if (rowHeights_.size() <= level) rowHeights_.resize(level + 1);
  rowHeights_[level] = std::max(rowHeights_[level], boxHeight(device));
  for (const int child : childrenOf(system_, device)) {
    if (!shown_.inTree[child]) continue;
    if (!isLeaf(child)) measure(child, level + 1);
    addColumn(device, child);
  }
  double width = 0;
  for (const Column& column : below_[device]) {
    width += column.width + (width > 0 ? kGap : 0);
    if (isLeaf(column.devices[0])) leafHeight_ = std::max(leafHeight_, stackHeight(column));
  }
  widths_[device] = std::max(width, level == 0 ? kNodeWidth : kSwitchWidth);
}

void Making::findRows() {
  const bool several = std::ranges::any_of(placing_.hosts, [](const Host& host) { return host.nodes.size() > 1; });
  double y = top_ + kHostHead + (several ? kSockets : 0) + kPadding;
  for (const double height : rowHeights_) {
    rows_.push_back(y);
    y += height + kDrop;
  }
  leafBottom_ = leafHeight_ > 0 ? y + leafHeight_ : y - kDrop;
  placing_.bottom = leafBottom_ + kPadding;
}

void Making::placeLeaves(const Column& column, double left) {
  double bottom = leafBottom_;
  for (auto each = column.devices.rbegin(); each != column.devices.rend(); ++each) {
    const double height = boxHeight(*each), trunk = kind(*each) == DeviceKind::kNic ? kTrunk : 0;
    placing_.boxes[*each] = {left + trunk, bottom - height, column.width - trunk, height};
    bottom -= height + kNicGap;
  }
}

void Making::place(int device, double left, size_t level) {
  const double width = widths_[device], own = level == 0 ? width : kSwitchWidth;
  placing_.boxes[device] = {left + (width - own) / 2, rows_[level], own, boxHeight(device)};
  double needed = -kGap;
  for (const Column& column : below_[device]) needed += column.width + kGap;
  double x = left + (width - needed) / 2;
  for (const Column& column : below_[device]) {
    if (isLeaf(column.devices[0])) {
      placeLeaves(column, x);
    } else {
      place(column.devices[0], x, level + 1);
    }
    x += column.width + kGap;
  }
}

void Making::group() {
  std::map<std::string, size_t> places;
  for (const int node : devicesOf(system_, DeviceKind::kNuma)) {
    if (!shown_.inTree[node]) continue;
    const std::string& host = system_.devices[node].numa->host;
    const auto [place, added] = places.emplace(host, placing_.hosts.size());
    if (added) placing_.hosts.push_back({plainText(host, kLongestHost), {}, {}});
    placing_.hosts[place->second].nodes.push_back(node);
  }
}

void Making::placeHost(Host& host, double& left) {
  double x = left + kPadding;
  for (const int node : host.nodes) {
    placing_.panels[node] = {x, rows_[0] - kPadding, widths_[node] + 2 * kPadding,
                             placing_.bottom - rows_[0] + kPadding};
    place(node, x + kPadding, 0);
    x = placing_.panels[node].right() + kGap;
  }
  x += kPadding - kGap;
  host.box = {left, top_, x - left, placing_.bottom + kPadding - top_};
  left = x + kHostGap;
}

Placing Making::run() {
  group();
  for (const Host& host : placing_.hosts)
    for (const int node : host.nodes) measure(node, 0);
  if (placing_.hosts.empty()) return placing_;
  findRows();
  double left = kHostGap;
  for (Host& host : placing_.hosts) placeHost(host, left);
  placing_.width = left;
  placing_.bottom += kPadding;
  return placing_;
}

}  // namespace

Placing placingOf(const System& system, const Shown& shown, double top) { return Making(system, shown, top).run(); }

Box socketsBar(const Host& host, const Placing& placing) {
  const Box &first = placing.panels[host.nodes.front()], &last = placing.panels[host.nodes.back()];
  return {first.x, host.box.y + kHostHead, last.right() - first.x, 24};
}

}  // namespace tutti::drawing
