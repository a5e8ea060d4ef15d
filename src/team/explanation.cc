#include "team/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "schedule/algorithm.h"
#include "team/cluster.h"

namespace tutti::comm {
namespace {

using Way = Explanation::Way;

Way wayTo(int peer, const Team& team, const Links& links, const plan::Profile& prices) {
  const topology::PeerInfo &self = team.info(team.rank()), &other = team.info(peer);
  link::Way found = team.registry().wayBetween(self, other);
  const PricedWay priced = pricedWay(team.infos(), team.rank(), peer, team.registry(), prices);
  Way way{std::string(priced.transport), {peer},    self.hostId == other.hostId, priced.cost.latencyUs,
          priced.cost.bandwidthGBs,      priced.by, std::move(found.notFaster)};
  // What was to be, and was not when it came to it: the log says more.
  if (const std::string made = links.transportTo(peer); !made.empty() && made != way.transport) {
    way.notFaster.push_back(fmt::format("{}: it failed when the link was made", way.transport));
    way.transport = made;
  }
  return way;
}

std::string textOf(const Way& way) {
  std::string text =
      fmt::format("{} to {} rank{} of {}", way.transport.empty() ? "nothing" : way.transport, way.ranks.size(),
                  way.ranks.size() == 1 ? "" : "s", way.sameHost ? "this host" : "other hosts");
  if (!way.pricedBy.empty())
    text += fmt::format(", {:.1f} us and {:.1f} GB/s {}", way.latencyUs, way.gigabytes, way.pricedBy);
  if (!way.notFaster.empty()) text += fmt::format("; not {}", fmt::join(way.notFaster, "; not "));
  return text;
}

}  // namespace

Explanation::Candidate candidateOf(const plan::Choice& choice) {
  return {describe(choice), std::string(nameOf(choice.algorithm)), "", choice.channels, choice.predictedUs,
          choice.setUpUs};
}

std::vector<Way> waysOf(const Team& team, const Links& links, const plan::Profile& prices) {
  std::vector<Way> ways;
  for (int peer = 0; peer < team.size(); ++peer) {
    if (peer == team.rank()) continue;
    Way way = wayTo(peer, team, links, prices);
    const auto alike = [&](const Way& other) {
      return std::tie(way.transport, way.sameHost, way.notFaster) ==
             std::tie(other.transport, other.sameHost, other.notFaster);
    };
    const auto same = std::ranges::find_if(ways, alike);
    if (same == ways.end())
      ways.push_back(std::move(way));
    else
      same->ranks.push_back(peer);
  }
  return ways;
}

std::string textOf(const Explanation& explanation) {
  std::string text = "chosen: " + explanation.choice.text;
  for (const auto& other : explanation.others) text += "\nnext: " + other.text;
  for (const std::string& reason : explanation.excluded) text += "\nnot: " + reason;
  for (const Way& way : explanation.ways) text += "\nlink: " + textOf(way);
  if (!explanation.order.empty()) text += "\nring order: " + explanation.order;
  if (!explanation.prices.empty()) text += "\nprices: " + explanation.prices;
  return text;
}

}  // namespace tutti::comm
