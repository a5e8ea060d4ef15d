#include "sim/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_size.h"
#include "chart/chart.h"
#include "sim/candidates.h"

namespace tutti::simtool {
namespace {

// Which of the rows' runs took which short way: a letter in the table, a line below it.
std::string marksOf(const Row& row) {
  std::string marks;
  if (row.proved) marks += 'p';
  if (row.result.form) marks += 'c';
  if (row.result.folded) marks += 'h';
  if (row.result.evened) marks += 'e';
  if (row.result.roundsRun < row.result.rounds) marks += 'x';
  return marks.empty() ? "-" : marks;
}

constexpr struct {
  char letter;
  const char* meaning;
} kMarks[] = {
    {'p', "p: before the run, the schedules of all ranks were proved to give every rank the right result"},
    {'c', "c: nothing was run: the ring's closed form was reckoned, which gives what its events give"},
    {'h', "h: one host was run and stands for all others, which do the same at the same time"},
    {'e', "e: all segments were taken to be as long as the longest, though the last ones are shorter"},
    {'x', "x: a part of the message's rounds was run; the rest follows from how long each took in the steady state"},
};

std::string line(const Table& table, const Row& row) {
  const sim::Result& result = row.result;
  return fmt::format("{:>8}  {:<12} {:>12.1f} {:>12.2f} {:>12.1f}  {:<5} {:>4.0f}%  {}\n",
                     byteSizeText(table.message.bytes), nameOf(row.algorithm), result.us, result.busGBs, result.firstUs,
                     marksOf(row), result.busiestShare * 100, result.busiest);
}

std::string bestOf(const Table& table) {
  const sim::Result& best = table.rows.front().result;
  return fmt::format("Best for {}: {}, {:.1f} us; its busiest link, {}, is in use {:.0f}% of the time{}.\n",
                     byteSizeText(table.message.bytes), nameOf(table.rows.front().algorithm), best.us, best.busiest,
                     best.busiestShare * 100,
                     best.busiestShare < 0.5 ? ": most of it goes into latency and waiting" : "");
}

// Once for all sizes, or else with the sizes.
std::string leftOutOf(const std::vector<Table>& tables) {
  std::string text;
  for (const std::string& each : tables.front().leftOut) text += fmt::format("Left out: {}.\n", each);
  std::vector<std::pair<std::string, std::string>> refused;  // and of which sizes
  for (const Table& table : tables)
    for (const std::string& each : table.refused) {
      auto found = std::ranges::find(refused, each, &std::pair<std::string, std::string>::first);
      if (found == refused.end()) found = refused.insert(found, {each, ""});
      found->second += (found->second.empty() ? "" : ", ") + byteSizeText(table.message.bytes);
    }
  for (const auto& [each, sizes] : refused) text += fmt::format("Left out of {}: {}.\n", sizes, each);
  if (!refused.empty()) text += "What takes too much for a comparison may still do by itself, with --algo.\n";
  return text;
}

std::string meaningsOf(const std::vector<Table>& tables) {
  std::string text, seen;
  for (const Table& table : tables)
    for (const Row& row : table.rows) seen += marksOf(row);
  for (const auto& mark : kMarks)
    if (seen.find(mark.letter) != std::string::npos) text += fmt::format("{}.\n", mark.meaning);
  return text;
}

bool allProved(const std::vector<Table>& tables) {
  return std::ranges::all_of(tables, [](const Table& table) {
    return std::ranges::all_of(table.rows, [](const Row& row) { return row.proved; });
  });
}

std::string nicsOf(const sim::Cluster& cluster) {
  if (cluster.nics.front().name == sim::kNoNic) return "none";
  double least = cluster.nics.front().gbs, most = least;
  for (const sim::Nic& nic : cluster.nics) least = std::min(least, nic.gbs), most = std::max(most, nic.gbs);
  const std::string each = least == most ? fmt::format("{:.1f}", least) : fmt::format("{:.1f} to {:.1f}", least, most);
  return fmt::format("{} of {} GB/s, {:.1f} us", cluster.nics.size(), each, cluster.remoteUs);
}

std::string portOf(const sim::Cluster& cluster) {
  if (cluster.ranksPerHost == 1 || cluster.ringGBs <= 0 || cluster.ringGBs == cluster.portGBs)
    return fmt::format("{:.1f} GB/s, {:.1f} us", cluster.portGBs, cluster.localUs);
  return fmt::format("{:.1f} GB/s, {:.1f} us; in rings {:.1f} GB/s, {:.1f} us", cluster.portGBs, cluster.localUs,
                     cluster.ringGBs, cluster.ringUs);
}

}  // namespace

std::string headOf(const sim::Cluster& cluster, Collective collective) {
  return fmt::format(
      "{}, ranks: {} (nodes of {}: {} of {})\n"
      "  port of a rank   {}\n"
      "  NICs of a node   {}\n"
      "  links            {} slots of {}, channels: {}\n",
      nameOf(collective), cluster.ranks(), cluster.name, cluster.hosts, cluster.ranksPerHost, portOf(cluster),
      nicsOf(cluster), cluster.depth, byteSizeText(cluster.slotBytes), cluster.channels);
}

std::string columns() {
  return fmt::format("{:>8}  {:<12} {:>12} {:>12} {:>12}  {:<5} {:>5}  {}\n", "size", "algorithm", "time (us)",
                     "busbw (GB/s)", "first (us)", "marks", "share", "busiest link");
}

std::string linesOf(const Table& table) {
  std::string text;
  for (const Row& row : table.rows) text += line(table, row);
  return text;
}

std::string notesOf(const std::vector<Table>& tables) {
  std::string text;
  for (const Table& table : tables) text += bestOf(table);
  text += leftOutOf(tables) + meaningsOf(tables);
  if (!allProved(tables))
    text += fmt::format(
        "Without p: not proved before the run, as more than {} steps of all ranks, or {} segments, take too long.\n",
        Prover::kMostSteps, Prover::kMostCells);
  if (tables.front().cluster.ranks() > sim::kMostRanksOfRuntime)
    text += fmt::format(
        "The library's communicators have up to {} ranks: these schedules are of the same builders, beyond that.\n",
        sim::kMostRanksOfRuntime);
  return text;
}

std::string plotOf(const std::vector<Table>& tables) {
  std::vector<chart::Curve> curves;
  for (const Table& table : tables)
    for (const Row& row : table.rows) {
      const std::string name(nameOf(row.algorithm));
      auto found = std::ranges::find(curves, name, &chart::Curve::name);
      if (found == curves.end())
        found = curves.insert(curves.end(), {name, static_cast<size_t>(row.algorithm), false, {}});
      found->points.push_back({double(table.message.bytes), row.result.busGBs, row.result.us});
    }
  const sim::Cluster& cluster = tables.front().cluster;
  return chart::draw(fmt::format("{}, {} ranks, nodes of {}: {}", nameOf(tables.front().message.collective),
                                 cluster.ranks(), cluster.name, cluster.hosts),
                     curves);
}

}  // namespace tutti::simtool
