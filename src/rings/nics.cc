#include "rings/nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "topology/speeds.h"

namespace tutti::rings {

using topology::Paths;
using topology::System;

namespace {

// Which of `many` is nearest to `end`; among equals the one that has been chosen least often.
size_t nearest(const Paths& paths, int end, const std::vector<int>& many, std::vector<int>& chosen) {
  const auto distance = [&](size_t i) {
    const topology::Path& path = paths.between(end, many[i]);
    return std::tuple(path.type, -path.gigabytes, chosen[i]);
  };
  size_t best = 0;
  for (size_t i = 1; i < many.size(); ++i)
    if (distance(i) < distance(best)) best = i;
  ++chosen[best];
  return best;
}

// Each GPU uses the port that is nearest.
Nics shared(const System& system, const Paths& paths, const std::vector<int>& gpus, const std::vector<int>& ports) {
  Nics all;
  std::vector<int> chosen(ports.size());
  for (const int port : ports) all.nics.push_back({nameOf(system, port), topology::kInternalGigabytes});
  for (const int gpu : gpus) {
    const size_t which = nearest(paths, gpu, ports, chosen);
    Nic& nic = all.nics[which];
    nic.gigabytes = std::min(nic.gigabytes, paths.between(gpu, ports[which]).gigabytes);
    all.of.push_back(static_cast<int>(which));
  }
  return all;
}

// Each port belongs to the GPU that is nearest. Nothing where one would have none.
Nics bundled(const System& system, const Paths& paths, const std::vector<int>& gpus, const std::vector<int>& ports) {
  std::vector<int> count(gpus.size());
  Nics all;
  all.nics.resize(gpus.size());
  for (const int port : ports) {
    const size_t owner = nearest(paths, port, gpus, count);
    if (all.nics[owner].name.empty()) all.nics[owner].name = nameOf(system, port);
    all.nics[owner].gigabytes += paths.between(gpus[owner], port).gigabytes;
  }
  if (std::ranges::find(count, 0) != count.end()) return {};
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (count[i] > 1) all.nics[i].name += fmt::format(" and {} more", count[i] - 1);
    all.of.push_back(static_cast<int>(i));
  }
  return all;
}

}  // namespace

Nics nicsOf(const System& system, const Paths& paths, const std::vector<int>& gpus, const std::vector<int>& ports) {
  if (ports.empty() || gpus.empty()) return {};
  if (ports.size() > gpus.size())
    if (Nics all = bundled(system, paths, gpus, ports); !all.of.empty()) return all;
  return shared(system, paths, gpus, ports);
}

}  // namespace tutti::rings
