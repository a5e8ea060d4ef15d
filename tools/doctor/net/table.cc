#include "doctor/net/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/version.h"
#include "doctor/words.h"

namespace tutti::doctor::net {
namespace {

using preflight::Finding;
using preflight::HostReport;
using preflight::InterfaceReport;
using preflight::IommuMode;
using preflight::Limits;
using preflight::PairResult;
using preflight::RdmaPortReport;

constexpr size_t kMostHosts = 32;   // with rows of their own
constexpr size_t kMostSquare = 12;  // hosts in a matrix
constexpr size_t kMostRows = 16;    // pairs in a list

using Row = std::vector<std::string>;

// Columns as wide as they have to be, two blanks between.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), row.size()));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string speed(int64_t megabits) {
  if (megabits == 0) return "-";
  return megabits >= 1000 ? fmt::format("{:g} Gbit/s", double(megabits) / 1000) : fmt::format("{} Mbit/s", megabits);
}

std::string bytes(uint64_t count) {
  if (count == Limits::kUnlimited) return "no limit";
  if (count == 0) return "-";
  if (count >= uint64_t{1} << 30) return fmt::format("{:.1f} GiB", double(count) / double(uint64_t{1} << 30));
  return count >= 1 << 20 ? fmt::format("{} MiB", count >> 20) : fmt::format("{} KiB", count >> 10);
}

std::string files(uint64_t count) { return count == Limits::kUnlimited ? "no limit" : fmt::to_string(count); }

const char* words(IommuMode mode) {
  switch (mode) {
    case IommuMode::kOff:
      return "off";
    case IommuMode::kPassthrough:
      return "passes through";
    case IommuMode::kTranslates:
      return "translates";
    case IommuMode::kUnknown:
      break;
  }
  return "-";
}

std::string acs(const HostReport& one) {
  return one.acsRedirects < 0 ? "unknown" : one.acsRedirects == 0 ? "no" : fmt::format("{} bridges", one.acsRedirects);
}

std::string hostTable(const std::vector<HostReport>& reports) {
  std::vector<Row> rows{
      {"host", "ranks", "tutti", "kernel", "may lock", "open files", "memory", "processors", "IOMMU", "ACS redirects"}};
  for (const HostReport& one : reports) {
    if (rows.size() > kMostHosts) break;
    const Limits& limits = one.limits;
    rows.push_back({one.host, one.firstRank < 0 ? "-" : fmt::to_string(one.ranks), one.version, one.kernel,
                    bytes(limits.lockedBytes), files(limits.openFiles), bytes(limits.memoryBytes),
                    limits.cores > 0 ? fmt::format("{:.1f}", limits.cores) : "no limit", words(one.iommu), acs(one)});
  }
  return aligned(rows);
}

std::string addressesOf(const InterfaceReport& one) {
  std::vector<std::string> texts;
  for (const auto& address : one.addresses) texts.push_back(fmt::format("{}/{}", address.ip, address.prefix));
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, " "));
}

std::string useOf(const InterfaceReport& one) { return one.use < 0 ? "-" : one.isLoopback ? "host" : "yes"; }

std::string interfaceTable(const std::vector<HostReport>& reports) {
  std::vector<Row> rows{{"host", "interface", "used", "state", "MTU", "speed", "addresses"}};
  for (const HostReport& host : reports)
    for (const InterfaceReport& one : host.interfaces)
      if (rows.size() <= 4 * kMostHosts && !(one.isLoopback && host.interfaces.size() > 1))
        rows.push_back({host.host, one.name, useOf(one), one.state, fmt::to_string(one.mtu), speed(one.megabits),
                        addressesOf(one)});
  return rows.size() == 1 ? "" : aligned(rows);
}

std::string gidsOf(const RdmaPortReport& port) {
  std::vector<std::string> texts;
  for (const auto& gid : port.gids)
    texts.push_back(fmt::format("{}: {}{}", gid.index, gid.address, gid.type.empty() ? "" : " (" + gid.type + ")"));
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string rdmaTable(const std::vector<HostReport>& reports) {
  std::vector<Row> rows{{"host", "RDMA port", "used", "state", "layer", "speed", "interface", "addresses"}};
  for (const HostReport& host : reports)
    for (const RdmaPortReport& one : host.rdma)
      if (rows.size() <= 4 * kMostHosts)
        rows.push_back({host.host, one.name(), one.isMeant && one.isActive() ? "yes" : "-",
                        one.physical.empty() ? one.state : one.state + ", " + one.physical, one.layer,
                        speed(one.megabits), one.interface.empty() ? "-" : one.interface, gidsOf(one)});
  return rows.size() == 1 ? "" : "\n" + aligned(rows);
}

std::string latency(double us) {
  return us >= 1000 ? fmt::format("{:.3g} ms", us / 1000) : fmt::format("{:.3g} us", us);
}

// One cell for each way: from the row's host to the column's.
std::string matrix(const std::vector<HostReport>& reports, const std::vector<PairResult>& pairs,
                   const std::string& transport) {
  std::vector<Row> rows(reports.size() + 1, Row(reports.size() + 1, "-"));
  rows[0][0] = "from, to";
  for (size_t i = 0; i < reports.size(); ++i) rows[i + 1][0] = rows[0][i + 1] = reports[i].host;
  for (const PairResult& one : pairs) {
    const auto cell = [&](double gigabytes) {
      return one.works() ? fmt::format("{:.3g} GB/s, {}", gigabytes, latency(one.latencyUs)) : "fails";
    };
    rows[one.lowHost + 1][one.highHost + 1] = cell(one.there);
    rows[one.highHost + 1][one.lowHost + 1] = cell(one.back);
  }
  return fmt::format("\n{} between hosts, GB/s and latency one way:\n{}", transport, aligned(rows));
}

// The slowest of many, those that fail first.
std::string slowest(const std::vector<HostReport>& reports, std::vector<PairResult> pairs, const std::string& title) {
  const auto worth = [](const PairResult& one) { return one.works() ? std::min(one.there, one.back) : -1; };
  std::ranges::stable_sort(pairs, {}, worth);
  std::vector<Row> rows{{"host", "host", "ranks", "there", "back", "latency"}};
  for (const PairResult& one : pairs) {
    if (rows.size() > kMostRows) break;
    const auto number = [&](double value) { return one.works() ? fmt::format("{:.3g} GB/s", value) : "fails"; };
    rows.push_back({reports[one.lowHost].host, reports[one.highHost].host, fmt::format("{}, {}", one.low, one.high),
                    number(one.there), number(one.back), one.works() ? latency(one.latencyUs) : "-"});
  }
  const std::string lead =
      pairs.size() > kMostRows ? fmt::format(": {} pairs, of which the slowest are", pairs.size()) : std::string(":");
  return fmt::format("\n{}{}\n{}", title, lead, aligned(rows));
}

std::string measured(const Outcome& outcome) {
  std::map<std::string, std::vector<PairResult>> between, inside;
  for (const PairResult& one : outcome.pairs)
    (one.lowHost == one.highHost ? inside : between)[one.transport].push_back(one);
  std::string text;
  for (const auto& [transport, pairs] : between)
    text += outcome.reports.size() <= kMostSquare ? matrix(outcome.reports, pairs, transport)
                                                  : slowest(outcome.reports, pairs, transport + " between hosts");
  for (const auto& [transport, pairs] : inside) text += slowest(outcome.reports, pairs, transport + " inside hosts");
  return text;
}

std::string counted(size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string told(const std::vector<Finding>& findings, size_t width) {
  if (findings.empty()) return "\nNothing to mend.\n";
  std::string text = "\n";
  for (const Finding& one : findings)
    text += wrapped(fmt::format("{}: {}", nameOf(one.severity), textOf(one)) + ".", width);
  return text;
}

}  // namespace

std::string asText(const Outcome& outcome, const std::vector<Finding>& findings, size_t width) {
  const bool alone = outcome.reports.size() == 1 && outcome.reports.front().firstRank < 0;
  std::string text =
      alone ? fmt::format("tutti {}: this host, which is of no job\n\n", kVersion)
            : fmt::format("tutti {}: {} on {}\n\n", kVersion, counted(static_cast<size_t>(outcome.ranks), "rank"),
                          counted(outcome.reports.size(), "host"));
  text += hostTable(outcome.reports);
  if (outcome.reports.size() > kMostHosts)
    text += fmt::format("and {} more hosts\n", outcome.reports.size() - kMostHosts);
  text += "\n" + interfaceTable(outcome.reports) + rdmaTable(outcome.reports) + measured(outcome);
  if (!outcome.notes.empty() || !outcome.broken.empty()) text += "\n";
  for (const std::string& note : outcome.notes) text += wrapped(note + ".", width);
  if (!outcome.broken.empty()) text += wrapped("The rest is missing: " + outcome.broken + ".", width);
  return findings.empty() && !outcome.broken.empty() ? text : text + told(findings, width);
}

}  // namespace tutti::doctor::net
