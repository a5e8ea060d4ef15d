#include "rings/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "rings/routes.h"

namespace tutti::rings {

using topology::DeviceKind;
using topology::Paths;
using topology::PathType;
using topology::System;

namespace {

constexpr double kRounding = 1e-6;  // GB/s that sums of parts may lack
constexpr int kMostSteps = 20'000;  // of one search
constexpr int kMostParts = 8;       // of one link
constexpr double kLeastGBs = 0.01;
constexpr size_t kAnyGpu = ~size_t{0};
constexpr PathType kLimits[] = {PathType::kNvLink,   PathType::kNvLinkRelayed, PathType::kSwitch,
                                PathType::kSwitches, PathType::kHost,          PathType::kSockets};

// All that the search looks at, by the positions of GPUs and ports in their lists.
struct Host {
  std::vector<int> gpus, ports;
  std::vector<std::vector<Route>> among, out, in;       // [gpu][gpu], [gpu][port], [gpu][port]
  std::vector<std::vector<PathType>> typeAmong, toNic;  // the same
  std::vector<double> capacities;
};

Host hostOf(const System& system, const Paths& paths, bool leaves) {
  Host host;
  host.gpus = byNumber(system, DeviceKind::kGpu);
  if (leaves) host.ports = byNumber(system, DeviceKind::kPort);
  Routes routes(system, paths);
  for (const int from : host.gpus) {
    auto& among = host.among.emplace_back();
    auto& types = host.typeAmong.emplace_back();
    for (const int to : host.gpus) {
      among.push_back(routes.between(from, to));
      types.push_back(among.back().empty() ? PathType::kNone : paths.between(from, to).type);
    }
    auto &out = host.out.emplace_back(), &in = host.in.emplace_back();
    auto& toNic = host.toNic.emplace_back();
    for (const int port : host.ports) {
      out.push_back(routes.between(from, port));
      in.push_back(routes.between(port, from));
      toNic.push_back(out.back().empty() ? PathType::kNone : paths.between(from, port).type);
    }
  }
  host.capacities = routes.capacities();
  return host;
}

// One ring by positions, and sets of them.
struct Found {
  std::vector<size_t> gpus;
  size_t entry = 0, exit = 0;
};

// As many rings of `gigabytes` each as can be had whose neighbours are no farther apart than `limit`.
class Search {
 public:
  Search(const Host& host, PathType limit, double gigabytes)
      : host_(host), limit_(limit), gigabytes_(gigabytes), left_(host.capacities), used_(host.gpus.size()) {}

  std::vector<Found> run() {
    if (host_.ports.empty()) {
      cycles();
      return best_;
    }
    while (best_.size() < kMostRings && through()) {
    }
    return best_;
  }

 private:
  bool fits(const Route& route) const {
    return !route.empty() &&
           std::ranges::all_of(route, [&](uint32_t one) { return left_[one] >= gigabytes_ - kRounding; });
  }
  void take(const Route& route, double sign) {
    for (const uint32_t one : route) left_[one] -= sign * gigabytes_;
  }
  bool joins(size_t from, size_t to) const {
    return host_.typeAmong[from][to] <= limit_ && fits(host_.among[from][to]);
  }

  std::vector<size_t> nextOf(size_t from) const;
  void cycles();
  void cyclesFrom(size_t here);
  void keepCycle(size_t last);
  bool enough() const { return steps_ > kMostSteps || best_.size() >= most_; }
  size_t mostCycles() const;

  bool through();
  bool throughFrom(size_t entry, size_t first, size_t last);
  bool pathFrom(size_t here, size_t entry, size_t last);
  bool leave(size_t here, size_t entry, bool sameNic);
  std::vector<size_t> entries() const;
  std::vector<size_t> gpusNear(size_t port) const;
  std::vector<size_t> portsFrom(size_t gpu) const;

  const Host& host_;
  PathType limit_;
  double gigabytes_;
  std::vector<double> left_;
  std::vector<char> used_;
  std::vector<size_t> way_;
  std::vector<Found> taken_, best_;
  size_t most_ = kMostRings;
  int steps_ = 0;
};

// Nearest first; among equals in the order of the numbers, from the own one on: rings that begin at different GPUs are
// then turned, and alike.
std::vector<size_t> Search::nextOf(size_t from) const {
  const size_t count = host_.gpus.size();
  std::vector<size_t> next;
  for (size_t i = 1; i < count; ++i) next.push_back((from + i) % count);
  std::ranges::stable_sort(next, {}, [&](size_t to) { return host_.typeAmong[from][to]; });
  return next;
}

// ---- one host: cycles, set after set ----

// What leaves the GPUs bounds the number of rings.
size_t Search::mostCycles() const {
  size_t most = kMostRings;
  for (size_t from = 0; from < host_.gpus.size(); ++from) {
    std::vector<uint32_t> firsts;
    double out = 0;
    for (size_t to = 0; to < host_.gpus.size(); ++to) {
      if (to == from || host_.typeAmong[from][to] > limit_ || host_.among[from][to].empty()) continue;
      const uint32_t first = host_.among[from][to].front();
      if (std::ranges::find(firsts, first) != firsts.end()) continue;
      firsts.push_back(first);
      out += std::floor((left_[first] + kRounding) / gigabytes_);
    }
    most = std::min(most, static_cast<size_t>(out));
  }
  return most;
}

void Search::cycles() {
  most_ = mostCycles();
  if (most_ == 0 || host_.gpus.size() < 2) return;
  way_ = {0};
  used_[0] = 1;
  cyclesFrom(0);
}

void Search::cyclesFrom(size_t here) {
  if (way_.size() == host_.gpus.size()) return keepCycle(here);
  for (const size_t next : nextOf(here)) {
    if (enough()) return;
    if (used_[next] || !joins(here, next)) continue;
    ++steps_;
    take(host_.among[here][next], 1);
    used_[next] = 1;
    way_.push_back(next);
    cyclesFrom(next);
    way_.pop_back();
    used_[next] = 0;
    take(host_.among[here][next], -1);
  }
}

// The cycle is closed, and others are looked for beside it.
void Search::keepCycle(size_t last) {
  if (!joins(last, 0)) return;
  take(host_.among[last][0], 1);
  taken_.push_back({way_, 0, 0});
  if (taken_.size() > best_.size()) best_ = taken_;
  if (!enough()) {
    const std::vector<size_t> way = std::exchange(way_, {0});
    const std::vector<char> used = std::exchange(used_, std::vector<char>(host_.gpus.size()));
    used_[0] = 1;
    cyclesFrom(0);
    way_ = way, used_ = used;
  }
  taken_.pop_back();
  take(host_.among[last][0], -1);
}

// ---- several hosts: ways from port to port, one after the other ----

std::vector<size_t> Search::portsFrom(size_t gpu) const {
  std::vector<size_t> ports(host_.ports.size());
  std::iota(ports.begin(), ports.end(), size_t{0});
  std::ranges::stable_sort(ports, {}, [&](size_t port) { return host_.toNic[gpu][port]; });
  return ports;
}

// The ports by what they still carry inwards, then by their numbers.
std::vector<size_t> Search::entries() const {
  std::vector<size_t> ports(host_.ports.size());
  std::vector<double> left(ports.size());
  std::iota(ports.begin(), ports.end(), size_t{0});
  for (const size_t port : ports)
    for (size_t gpu = 0; gpu < host_.gpus.size(); ++gpu)
      if (const Route& route = host_.in[gpu][port]; !route.empty()) left[port] = left_[route.front()];
  std::ranges::stable_sort(ports, std::greater<>(),
                           [&](size_t port) { return std::floor(left[port] / gigabytes_ + kRounding); });
  return ports;
}

// A ring that leaves by the port through which it came stays on one rail of the network. That takes a second GPU which
// is near that port; without one the ring leaves by another port, near its last GPU.
bool Search::through() {
  for (const size_t entry : entries()) {
    const std::vector<size_t> gpus = gpusNear(entry);
    const auto near = [&](size_t gpu) { return host_.toNic[gpu][entry] <= PathType::kSwitches; };
    for (const size_t first : gpus)
      for (const size_t last : gpus)
        if (first != last && near(first) && near(last) && throughFrom(entry, first, last)) return true;
    for (const size_t first : gpus)
      if (throughFrom(entry, first, kAnyGpu)) return true;
  }
  return false;
}

std::vector<size_t> Search::gpusNear(size_t port) const {
  std::vector<size_t> gpus(host_.gpus.size());
  std::iota(gpus.begin(), gpus.end(), size_t{0});
  std::ranges::stable_sort(gpus, {}, [&](size_t gpu) { return host_.toNic[gpu][port]; });
  return gpus;
}

bool Search::throughFrom(size_t entry, size_t first, size_t last) {
  const Route& route = host_.in[first][entry];
  if (!fits(route)) return false;
  take(route, 1);
  used_.assign(used_.size(), 0);
  used_[first] = 1;
  way_ = {first};
  const bool found = pathFrom(first, entry, last);
  if (!found) take(route, -1);
  return found;
}

bool Search::pathFrom(size_t here, size_t entry, size_t last) {
  const size_t count = host_.gpus.size();
  if (way_.size() == count) return leave(here, entry, last != kAnyGpu);
  for (const size_t next : nextOf(here)) {
    const bool closes = way_.size() + 1 == count;
    if (used_[next] || (last != kAnyGpu && (next == last) != closes) || !joins(here, next)) continue;
    if (++steps_ > kMostSteps) return false;
    take(host_.among[here][next], 1);
    used_[next] = 1;
    way_.push_back(next);
    if (pathFrom(next, entry, last)) return true;
    way_.pop_back();
    used_[next] = 0;
    take(host_.among[here][next], -1);
  }
  return false;
}

bool Search::leave(size_t here, size_t entry, bool sameNic) {
  for (const size_t port : portsFrom(here)) {
    if (!fits(host_.out[here][port]) || (sameNic && port != entry)) continue;
    take(host_.out[here][port], 1);
    best_.push_back({way_, entry, port});
    return true;
  }
  return false;
}

Rings ringsOf(const Host& host, const std::vector<Found>& found, double gigabytes) {
  Rings rings;
  rings.gigabytes = gigabytes;
  for (const Found& one : found) {
    Ring& ring = rings.rings.emplace_back();
    for (const size_t gpu : one.gpus) ring.gpus.push_back(host.gpus[gpu]);
    const size_t count = one.gpus.size();
    for (size_t i = 0; i + (host.ports.empty() ? 0 : 1) < count; ++i)
      rings.among = std::max(rings.among, host.typeAmong[one.gpus[i]][one.gpus[(i + 1) % count]]);
    if (host.ports.empty()) continue;
    ring.entry = host.ports[one.entry], ring.exit = host.ports[one.exit];
    rings.toNic =
        std::max({rings.toNic, host.toNic[one.gpus.front()][one.entry], host.toNic[one.gpus.back()][one.exit]});
  }
  return rings;
}

// Whether anyone gets to everyone by ways no worse than that.
bool connected(const Host& host, PathType limit) {
  std::vector<size_t> reached{0};
  std::vector<char> known(host.gpus.size());
  known[0] = 1;
  for (size_t i = 0; i < reached.size(); ++i)
    for (size_t to = 0; to < known.size(); ++to)
      if (!known[to] && host.typeAmong[reached[i]][to] <= limit) known[to] = 1, reached.push_back(to);
  return reached.size() == known.size();
}

// What rings could have each, the most first: a link as a whole, or one of its equal parts.
std::vector<double> widthsOf(const Host& host) {
  std::vector<double> widths;
  for (const double capacity : host.capacities)
    for (int parts = 1; parts <= kMostParts; ++parts) widths.push_back(capacity / parts);
  std::ranges::sort(widths, std::greater<>());
  const auto alike = [](double a, double b) { return a - b < kRounding; };
  widths.erase(std::unique(widths.begin(), widths.end(), alike), widths.end());
  std::erase_if(widths, [](double width) { return width < kLeastGBs; });
  return widths;
}

}  // namespace

// Fewer and wider rings before more and narrower ones that carry no more together.
Rings searchRings(const System& system, const Paths& paths, bool leaves) {
  const Host host = hostOf(system, paths, leaves);
  Rings best;
  if (host.gpus.empty() || (leaves ? host.ports.empty() : host.gpus.size() < 2)) return best;
  const std::vector<double> widths = widthsOf(host);
  for (const PathType limit : kLimits) {
    if (!connected(host, limit)) continue;
    for (const double width : widths) {
      if (width * kMostRings <= best.total()) break;
      const std::vector<Found> found = Search(host, limit, width).run();
      if (width * static_cast<double>(found.size()) > best.total() * 1.01) best = ringsOf(host, found, width);
    }
    if (!best.rings.empty()) return best;
  }
  return best;
}

std::string textOf(const System& system, const Ring& ring) {
  std::vector<std::string> names;
  for (const int gpu : ring.gpus) names.push_back(nameOf(system, gpu));
  const std::string inside = fmt::format("{}", fmt::join(names, " - "));
  if (ring.entry < 0) return inside;
  return fmt::format("{} > {} > {}", nameOf(system, ring.entry), inside, nameOf(system, ring.exit));
}

}  // namespace tutti::rings
