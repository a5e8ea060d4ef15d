#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "preflight/finders.h"

namespace tutti::preflight {
namespace {

using Pairs = std::vector<const PairResult*>;

constexpr double kFarSlower = 3;  // less than a third

// What is compared: one transport, inside hosts or between them.
std::map<std::tuple<std::string, bool>, Pairs> kindsOf(const std::vector<PairResult>& pairs) {
  std::map<std::tuple<std::string, bool>, Pairs> kinds;
  for (const PairResult& one : pairs) kinds[{one.transport, one.lowHost == one.highHost}].push_back(&one);
  return kinds;
}

std::string nameOf(const Reports& reports, const PairResult& pair) {
  return fmt::format("{} (rank {}) and {} (rank {})", reports[pair.lowHost].host, pair.low, reports[pair.highHost].host,
                     pair.high);
}

double medianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double slowerWay(const PairResult& pair) { return std::min(pair.there, pair.back); }

Pairs working(const Pairs& all) {
  Pairs good;
  for (const PairResult* one : all)
    if (one->works()) good.push_back(one);
  return good;
}

// Hosts all of whose pairs are bad, where others have good ones: it is them and not the ways to each.
std::set<size_t> hostsToBlame(const Pairs& all, const Pairs& bad) {
  std::map<size_t, size_t> among, badOf;
  for (const PairResult* one : all)
    for (const size_t host : {one->lowHost, one->highHost}) ++among[host];
  for (const PairResult* one : bad)
    for (const size_t host : {one->lowHost, one->highHost}) ++badOf[host];
  std::set<size_t> blamed;
  for (const auto& [host, count] : badOf)
    if (count >= 2 && count == among[host]) blamed.insert(host);
  if (blamed.size() == among.size()) blamed.clear();
  return blamed;
}

// A finding for each host to blame, and one for each bad pair of other hosts. `what` of a pair, or of a host's first.
template <class OfHost, class OfPair>
void blame(const Pairs& all, const Pairs& bad, OfHost ofHost, OfPair ofPair) {
  const std::set<size_t> blamed = hostsToBlame(all, bad);
  for (const size_t host : blamed) {
    const auto first =
        std::ranges::find_if(bad, [&](const PairResult* one) { return one->lowHost == host || one->highHost == host; });
    ofHost(host, **first);
  }
  for (const PairResult* one : bad)
    if (!blamed.contains(one->lowHost) && !blamed.contains(one->highHost)) ofPair(*one);
}

void findBroken(const Reports& reports, const Pairs& all, const std::string& transport, Findings& findings) {
  Pairs bad;
  for (const PairResult* one : all)
    if (!one->works()) bad.push_back(one);
  const std::string fix = transport == "verbs"
                              ? "Look at its ports, their addresses and the switches between: docs/verbs.md"
                              : "Look at firewalls, routes (`ip route get`) and switches between them";
  blame(
      all, bad,
      [&](size_t host, const PairResult& first) {
        findings.push_back({Severity::kError, reports[host].host,
                            fmt::format("no other host reaches it over {}: {}", transport, first.why), fix});
      },
      [&](const PairResult& pair) {
        const bool isInside = pair.lowHost == pair.highHost;
        findings.push_back(
            {Severity::kError, nameOf(reports, pair),
             fmt::format("they do not reach each other over {}: {}", transport, pair.why),
             isInside ? std::string("Look at the limits of the container, and at TUTTI_UNIX_SOCKETS") : fix});
      });
}

// What a host can is what it does with the host that it does best with: by that, a slow host does not make those slow
// that talk to it.
std::map<size_t, double> bestOf(const Pairs& good) {
  std::map<size_t, double> best;
  for (const PairResult* one : good)
    for (const size_t host : {one->lowHost, one->highHost}) best[host] = std::max(best[host], slowerWay(*one));
  return best;
}

void findSlow(const Reports& reports, const Pairs& all, const std::string& transport, Findings& findings) {
  const Pairs good = working(all);
  const std::map<size_t, double> best = bestOf(good);
  if (best.size() < 3) return;  // of two nobody knows what would be right
  std::vector<double> speeds;
  for (const auto& [host, speed] : best) speeds.push_back(speed);
  const double usual = medianOf(speeds);
  for (const auto& [host, speed] : best)
    if (speed * kFarSlower < usual)
      findings.push_back({Severity::kWarning, reports[host].host,
                          fmt::format("with no other host it exchanges more than {:.3g} GB/s over {}, where most reach "
                                      "{:.3g}",
                                      speed, transport, usual),
                          "Look at its NIC, its cable, its switch port and at what else runs there"});
  for (const PairResult* one : good) {
    const double could = std::min(best.at(one->lowHost), best.at(one->highHost));
    if (slowerWay(*one) * kFarSlower < could)
      findings.push_back(
          {Severity::kWarning, nameOf(reports, *one),
           fmt::format("{:.3g} GB/s over {}, where both reach {:.3g} with others", slowerWay(*one), transport, could),
           "Look at the way between them: a switch, a link between switches, a route"});
  }
}

// Memory is near or far inside one host, so that only much less is worth a word.
void findSlowInside(const Reports& reports, const Pairs& all, const std::string& transport, Findings& findings) {
  const Pairs good = working(all);
  std::vector<double> speeds;
  for (const PairResult* one : good) speeds.push_back(slowerWay(*one));
  if (speeds.size() < 3) return;
  const double median = medianOf(speeds);
  for (const PairResult* one : good)
    if (slowerWay(*one) * kFarSlower < median)
      findings.push_back(
          {Severity::kHint, nameOf(reports, *one),
           fmt::format("{:.3g} GB/s over {}, where the median is {:.3g}", slowerWay(*one), transport, median),
           "Look at what else runs there, and at which cores the ranks are bound to"});
}

// One way far slower than the other.
void findLopsided(const Reports& reports, const Pairs& all, const std::string& transport, Findings& findings) {
  constexpr double kFarApart = 4;
  for (const PairResult* one : all) {
    if (!one->works() || slowerWay(*one) * kFarApart >= std::max(one->there, one->back)) continue;
    const bool there = one->there < one->back;
    findings.push_back(
        {Severity::kWarning, nameOf(reports, *one),
         fmt::format("{:.3g} GB/s over {} from {} to {}, and {:.3g} the other way", slowerWay(*one), transport,
                     reports[there ? one->lowHost : one->highHost].host,
                     reports[there ? one->highHost : one->lowHost].host, std::max(one->there, one->back)),
         "Look for errors and drops on the ports of that way (`ethtool -S`, `perfquery`)"});
  }
}

void findLate(const Reports& reports, const Pairs& all, const std::string& transport, Findings& findings) {
  constexpr double kFarLater = 10, kAtLeastUs = 1000;
  std::vector<double> times;
  for (const PairResult* one : all)
    if (one->works()) times.push_back(one->latencyUs);
  if (times.size() < 3) return;
  const double median = medianOf(times);
  for (const PairResult* one : all)
    if (one->works() && one->latencyUs > kAtLeastUs && one->latencyUs > kFarLater * median)
      findings.push_back({Severity::kWarning, nameOf(reports, *one),
                          fmt::format("a few bytes take {:.0f} us over {}, where the median of all pairs is {:.0f}",
                                      one->latencyUs, transport, median),
                          "Look at the way between them: it is congested, or longer than others"});
}

}  // namespace

void findSlowPairs(const Reports& reports, const std::vector<PairResult>& pairs, Findings& findings) {
  for (const auto& [kind, all] : kindsOf(pairs)) {
    const auto& [transport, isInside] = kind;
    findBroken(reports, all, transport, findings);
    if (isInside) {
      findSlowInside(reports, all, transport, findings);
      continue;
    }
    findSlow(reports, all, transport, findings);
    findLopsided(reports, all, transport, findings);
    findLate(reports, all, transport, findings);
  }
}

}  // namespace tutti::preflight
