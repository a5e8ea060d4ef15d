// The order of a host's ranks in a ring, and what its links carry.
#include "rings/host_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "catalog/known_systems.h"
#include "rings/routes.h"

namespace tutti::rings {
namespace {

using topology::DeviceKind;
using topology::Paths;
using topology::System;

std::vector<int> gpusOf(const System& system) { return byNumber(system, DeviceKind::kGpu); }

std::vector<int> some(const System& system, const std::vector<int>& numbers) {
  std::vector<int> gpus;
  for (const int number : numbers) gpus.push_back(gpusOf(system)[static_cast<size_t>(number)]);
  return gpus;
}

HostLinks linksOf(const char* name, const std::vector<int>& numbers = {}) {
  const System system = topology::makeKnownSystem(name);
  return hostLinks(system, numbers.empty() ? gpusOf(system) : some(system, numbers));
}

struct Golden {
  const char* system;
  std::vector<int> order;
  const char *along, *among;
  double ringGBs, pairGBs, nicGBs, networkGBs;
};
const std::vector<int> kNumbered{0, 1, 2, 3, 4, 5, 6, 7};

TEST(HostLinks, OfKnownSystems) {
  const Golden kGolden[] = {
      {"dgx-a100", kNumbered, "NVL", "NVL", 240, 240, 24, 24},
      {"hgx-h100", kNumbered, "NVL", "NVL", 370.8, 370.8, 48, 48},
      {"aws-p5", kNumbered, "NVL", "NVL", 370.8, 370.8, 48, 48},
      {"ibm-hgx-h100", kNumbered, "NVL", "NVL", 370.8, 370.8, 24, 24},
      {"pcie-box", kNumbered, "SYS", "SYS", 22, 22, 12, 3},
      // Two NVLinks of 20 GB/s from each to the next; pairs that have none of their own go over PCI.
      {"azure-ndv2", {0, 3, 2, 1, 5, 6, 7, 4}, "NVL", "SYS", 40, 10, 10, 1.25}};
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.system);
    const HostLinks links = linksOf(golden.system);
    EXPECT_EQ(links.order, golden.order);
    EXPECT_EQ(links.asNumbered, golden.order == kNumbered);
    EXPECT_EQ(nameOf(links.along), golden.along);
    EXPECT_EQ(nameOf(links.among), golden.among);
    EXPECT_NEAR(links.ringGBs, golden.ringGBs, 1e-6);
    EXPECT_NEAR(links.pairGBs, golden.pairGBs, 1e-6);
    EXPECT_NEAR(links.nicGBs, golden.nicGBs, 1e-6);
    EXPECT_NEAR(links.networkGBs, golden.networkGBs, 1e-6);
  }
}

// The one check that does not trust the search: what the hops together take of each direction of each NVLink.
TEST(HostLinks, TheOrderCarriesWhatIsSaid) {
  const System system = topology::makeKnownSystem("azure-ndv2");
  const Paths paths(system);
  Routes routes(system, paths);
  std::vector<int> gpus = gpusOf(system);
  do {
    const HostLinks links = hostLinks(system, gpus);
    ASSERT_EQ(links.order.front(), 0);
    std::vector<int> sorted = links.order;
    std::ranges::sort(sorted);
    ASSERT_EQ(sorted, kNumbered);
    std::map<uint32_t, double> load;
    for (size_t i = 0; i < gpus.size(); ++i) {
      const int from = gpus[links.order[i]], to = gpus[links.order[(i + 1) % gpus.size()]];
      ASSERT_EQ(paths.between(from, to).type, topology::PathType::kNvLink);
      for (const uint32_t link : routes.between(from, to)) load[link] += links.ringGBs;
    }
    for (const auto& [link, sum] : load) ASSERT_LE(sum, routes.capacities()[link] + 1e-6);
    ASSERT_NEAR(links.ringGBs, 40, 1e-6);
    std::rotate(gpus.begin(), gpus.begin() + 3, gpus.end());
    std::swap(gpus[1], gpus[5]);
  } while (gpus != gpusOf(system));
}

TEST(HostLinks, OfSomeOfTheGpus) {
  const HostLinks four = linksOf("azure-ndv2", {0, 1, 2, 3});
  EXPECT_EQ(nameOf(four.along), "NVL");
  EXPECT_NEAR(four.pairGBs, 20, 1e-6);  // all have NVLinks to each other
  EXPECT_GE(four.ringGBs, 20);
  const HostLinks across = linksOf("azure-ndv2", {0, 6});  // no NVLink between these
  EXPECT_EQ(across.order, (std::vector<int>{0, 1}));
  EXPECT_EQ(nameOf(across.along), "SYS");
  EXPECT_NEAR(across.ringGBs, across.pairGBs, 1e-6);
  EXPECT_LT(across.ringGBs, 20);
}

// Ranks that share a GPU stay next to each other, and share its NIC.
TEST(HostLinks, OfRanksThatShareGpus) {
  const HostLinks links = linksOf("hgx-h100", {0, 1, 0, 1});
  EXPECT_EQ(links.order, (std::vector<int>{0, 2, 1, 3}));
  EXPECT_TRUE(links.asNumbered);
  EXPECT_NEAR(links.ringGBs, 370.8, 1e-6);
  EXPECT_NEAR(links.nicGBs, 48, 1e-6);
  EXPECT_NEAR(links.networkGBs, 24, 1e-6);
  const HostLinks mesh = linksOf("azure-ndv2", {0, 1, 2, 3, 4, 5, 6, 7, 7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(mesh.order, (std::vector<int>{0, 15, 3, 12, 2, 13, 1, 14, 5, 10, 6, 9, 7, 8, 4, 11}));
}

// As where one GPU's NVLinks are down: the ring goes on over PCI to it and from it, and that is what it carries.
TEST(HostLinks, OfAGpuWithoutNvlinks) {
  System system = topology::makeKnownSystem("azure-ndv2");
  const int lost = gpusOf(system)[5];
  system.links.erase(std::remove_if(system.links.begin(), system.links.end(),
                                    [&](const topology::Link& link) {
                                      return link.kind == topology::LinkKind::kNvLink &&
                                             (link.a == lost || link.b == lost);
                                    }),
                     system.links.end());
  const HostLinks links = hostLinks(system, gpusOf(system));
  EXPECT_EQ(links.order.size(), 8u);
  EXPECT_GT(links.along, topology::PathType::kNvLink);
  EXPECT_GT(links.ringGBs, 0);
  EXPECT_LE(links.ringGBs, 20);
}

TEST(HostLinks, OfOneGpuOrNone) {
  const HostLinks one = linksOf("hgx-h100", {3, 3});
  EXPECT_EQ(one.order, (std::vector<int>{0, 1}));
  EXPECT_EQ(one.ringGBs, 0);
  EXPECT_EQ(one.pairGBs, 0);
  EXPECT_NEAR(one.nicGBs, 48, 1e-6);
  EXPECT_NEAR(one.networkGBs, 24, 1e-6);
  EXPECT_TRUE(hostLinks(System{}, {}).order.empty());
}

// GPUs that do not reach each other inside the host: nothing is known of them.
TEST(HostLinks, OfGpusThatAreApart) {
  System system = topology::makeKnownSystem("pcie-box");
  std::erase_if(system.links, [](const topology::Link& link) { return link.kind == topology::LinkKind::kSockets; });
  const HostLinks links = hostLinks(system, gpusOf(system));
  EXPECT_EQ(links.order, kNumbered);
  EXPECT_EQ(links.ringGBs, 0);
  EXPECT_EQ(links.pairGBs, 0);
}

}  // namespace
}  // namespace tutti::rings
