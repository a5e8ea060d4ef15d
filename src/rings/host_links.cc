#include "rings/host_links.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "rings/nics.h"
#include "rings/routes.h"

namespace tutti::rings {

using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::Path;
using topology::Paths;
using topology::PathType;
using topology::System;

namespace {

constexpr double kSlack = 1e-6;           // GB/s that sums of parts may lack
constexpr int kMostTries = 20'000;        // of one width among ways of one kind
constexpr int kMostTriesInAll = 200'000;  // a tenth of a second
constexpr int kMostHopsOfALink = 8;
constexpr PathType kKinds[] = {PathType::kNvLink,   PathType::kC2c,  PathType::kSwitch,
                               PathType::kSwitches, PathType::kHost, PathType::kSockets};

using Cycle = std::vector<size_t>;  // by the positions of its GPUs in a list

System withoutNvLinks(System system) {
  std::erase_if(system.links, [](const Link& link) { return link.kind == LinkKind::kNvLink; });
  return system;
}

// Ways between GPUs, by their positions in a list: NVLinks between two, or through NVSwitches; else what is beside
// these.
class Ways {
 public:
  Ways(const System& system, const Paths& paths, const std::vector<int>& gpus);

  size_t count() const noexcept { return count_; }
  PathType type(size_t from, size_t to) const { return ways_[from * count_ + to].type; }
  double gigabytes(size_t from, size_t to) const { return ways_[from * count_ + to].gigabytes; }
  const Route& route(size_t from, size_t to) const { return ways_[from * count_ + to].route; }
  const std::vector<double>& capacities() const noexcept { return capacities_; }

 private:
  struct Way {
    PathType type = PathType::kNone;
    double gigabytes = 0;
    Route route;
  };
  size_t count_;
  std::vector<Way> ways_;
  std::vector<double> capacities_;  // of all routes
};

Ways::Ways(const System& system, const Paths& paths, const std::vector<int>& gpus)
    : count_(gpus.size()), ways_(gpus.size() * gpus.size()) {
  const System plain = withoutNvLinks(system);
  const Paths plainPaths(plain);
  Routes routes(system, paths), plainRoutes(plain, plainPaths);
  const auto hasNvLinks = [&](size_t i) {
    return paths.between(gpus[i / count_], gpus[i % count_]).type == PathType::kNvLink;
  };
  for (size_t i = 0; i < ways_.size(); ++i) {
    const int from = gpus[i / count_], to = gpus[i % count_];
    Route route = (hasNvLinks(i) ? routes : plainRoutes).between(from, to);
    if (route.empty()) continue;
    const Path& path = (hasNvLinks(i) ? paths : plainPaths).between(from, to);
    ways_[i] = {path.type, path.gigabytes, std::move(route)};
  }
  // The others' links are counted behind those of the first.
  capacities_ = routes.capacities();
  for (size_t i = 0; i < ways_.size(); ++i)
    if (!hasNvLinks(i))
      for (uint32_t& link : ways_[i].route) link += static_cast<uint32_t>(routes.capacities().size());
  capacities_.insert(capacities_.end(), plainRoutes.capacities().begin(), plainRoutes.capacities().end());
}

template <class Visit>
void forHops(const Cycle& ring, Visit visit) {
  for (size_t i = 0; i < ring.size(); ++i) visit(ring[i], ring[(i + 1) % ring.size()]);
}

PathType worstOf(const Cycle& ring, const Ways& ways) {
  PathType worst = PathType::kLocal;
  forHops(ring, [&](size_t from, size_t to) { worst = std::max(worst, ways.type(from, to)); });
  return worst;
}

// What each can send to the next, all at the same time.
double carriedBy(const Cycle& ring, const Ways& ways) {
  std::vector<int> hops(ways.capacities().size());
  bool closed = true;
  forHops(ring, [&](size_t from, size_t to) {
    closed = closed && !ways.route(from, to).empty();
    for (const uint32_t link : ways.route(from, to)) ++hops[link];
  });
  if (!closed) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t link = 0; link < hops.size(); ++link)
    if (hops[link] > 0) least = std::min(least, ways.capacities()[link] / hops[link]);
  return least;
}

// One ring of so many GB/s, whose neighbours are no farther apart than that kind of way.
class CycleSearch {
 public:
  CycleSearch(const Ways& ways, PathType kind, double gigabytes)
      : ways_(ways), kind_(kind), gigabytes_(gigabytes), left_(ways.capacities()), used_(ways.count()) {}

  // Empty where none was found.
  Cycle run() {
    if (!everyoneHasANext()) return {};
    used_[0] = 1;
    ring_ = {0};
    return goOn(0) ? ring_ : Cycle();
  }
  int tries() const noexcept { return tries_; }

 private:
  bool joins(size_t from, size_t to) const {
    const Route& route = ways_.route(from, to);
    return from != to && ways_.type(from, to) <= kind_ && !route.empty() &&
           std::ranges::all_of(route, [&](uint32_t link) { return left_[link] >= gigabytes_ - kSlack; });
  }
  void take(size_t from, size_t to, double sign) {
    for (const uint32_t link : ways_.route(from, to)) left_[link] -= sign * gigabytes_;
  }
  bool everyoneHasANext() const {
    for (size_t from = 0; from < ways_.count(); ++from) {
      bool has = false;
      for (size_t to = 0; to < ways_.count(); ++to) has = has || joins(from, to);
      if (!has) return false;
    }
    return true;
  }

  // Nearest first; among equals in the order of the numbers, from the own one on.
  std::vector<size_t> nextOf(size_t from) const {
    std::vector<size_t> next;
    for (size_t i = 1; i < ways_.count(); ++i) next.push_back((from + i) % ways_.count());
    std::ranges::stable_sort(next, {}, [&](size_t to) { return ways_.type(from, to); });
    return next;
  }

  bool goOn(size_t here) {
    if (ring_.size() == ways_.count()) return joins(here, ring_.front());
    for (const size_t next : nextOf(here)) {
      if (used_[next] || !joins(here, next)) continue;
      if (++tries_ > kMostTries) return false;
      take(here, next, 1);
      used_[next] = 1;
      ring_.push_back(next);
      if (goOn(next)) return true;
      ring_.pop_back();
      used_[next] = 0;
      take(here, next, -1);
    }
    return false;
  }

  const Ways& ways_;
  PathType kind_;
  double gigabytes_;
  std::vector<double> left_;
  std::vector<char> used_;
  Cycle ring_;
  int tries_ = 0;
};

// What a ring could have, the most first: a link as a whole, or one of its equal parts.
std::vector<double> widthsOf(const Ways& ways) {
  std::vector<double> widths;
  for (const double capacity : ways.capacities())
    for (int hops = 1; hops <= kMostHopsOfALink; ++hops) widths.push_back(capacity / hops);
  std::ranges::sort(widths, std::greater<>());
  const auto alike = [](double a, double b) { return a - b < kSlack; };
  widths.erase(std::unique(widths.begin(), widths.end(), alike), widths.end());
  return widths;
}

// The one that carries most; among such of the best ways; and that of the numbers where none is better.
Cycle widestRing(const Ways& ways) {
  Cycle numbered(ways.count());
  std::iota(numbered.begin(), numbered.end(), size_t{0});
  const double carried = carriedBy(numbered, ways);
  const PathType worst = worstOf(numbered, ways);
  int tries = 0;
  for (const double width : widthsOf(ways)) {
    if (width < carried - kSlack) break;
    for (const PathType kind : kKinds) {
      if ((width <= carried + kSlack && kind >= worst) || tries > kMostTriesInAll) return numbered;
      CycleSearch search(ways, kind, width);
      Cycle found = search.run();
      if (!found.empty()) return found;
      tries += search.tries();
    }
  }
  return numbered;
}

void lookAtPairs(HostLinks& links, const Ways& ways) {
  links.pairGBs = std::numeric_limits<double>::infinity();
  for (size_t from = 0; from < ways.count(); ++from)
    for (size_t to = 0; to < ways.count(); ++to) {
      if (from == to) continue;
      links.among = std::max(links.among, ways.type(from, to));
      links.pairGBs = std::min(links.pairGBs, ways.gigabytes(from, to));
    }
}

// Of a NIC each that uses it has an equal part.
void lookAtNics(HostLinks& links, const System& system, const Paths& paths, const std::vector<int>& gpus) {
  const std::vector<int> all = byNumber(system, DeviceKind::kGpu);
  const Nics nics = nicsOf(system, paths, all, devicesOf(system, DeviceKind::kPort));
  if (nics.of.empty() || gpus.empty()) return;
  std::vector<int> users(nics.nics.size());
  for (const int gpu : gpus) ++users[nics.of[std::ranges::find(all, gpu) - all.begin()]];
  links.nicGBs = links.networkGBs = std::numeric_limits<double>::infinity();
  for (size_t nic = 0; nic < users.size(); ++nic) {
    if (users[nic] == 0) continue;
    links.nicGBs = std::min(links.nicGBs, nics.nics[nic].gigabytes);
    links.networkGBs = std::min(links.networkGBs, nics.nics[nic].gigabytes / users[nic]);
  }
}

}  // namespace

HostLinks hostLinks(const System& system, const std::vector<int>& gpus) {
  HostLinks links;
  std::vector<int> distinct;
  for (const int gpu : gpus)
    if (std::ranges::find(distinct, gpu) == distinct.end()) distinct.push_back(gpu);
  const Paths paths(system);
  lookAtNics(links, system, paths, gpus);
  Cycle ring(distinct.size());
  std::iota(ring.begin(), ring.end(), size_t{0});
  if (distinct.size() > 1) {
    const Ways ways(system, paths, distinct);
    const Cycle widest = widestRing(ways);
    links.asNumbered = widest == ring;
    ring = widest;
    links.along = worstOf(ring, ways);
    links.ringGBs = carriedBy(ring, ways);
    lookAtPairs(links, ways);
  }
  for (const size_t place : ring)
    for (size_t rank = 0; rank < gpus.size(); ++rank)
      if (gpus[rank] == distinct[place]) links.order.push_back(static_cast<int>(rank));
  return links;
}

}  // namespace tutti::rings
