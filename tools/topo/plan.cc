#include "topo/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "base/command_name.h"
#include "plan/profile_file.h"
#include "schedule/algorithm.h"
#include "tune/measure.h"

namespace tutti::topo {
namespace {

using explain::Answer;
using explain::Candidate;
using explain::Question;
using Json = nlohmann::ordered_json;

constexpr int kMeasuredRounds = 3;

Question questionOf(const PlanOptions& options) {
  Question question;
  question.collective = tools::collectiveOf(options);
  question.hosts = options.nodes, question.ranksPerHost = options.ranksPerNode;
  if (!options.algo.empty()) question.algorithm = schedule::parseAllowed(options.algo);
  if (!options.protocol.empty()) question.protocol = plan::parseAllowedProtocols(options.protocol);
  question.channels = options.channels;
  question.transport = options.transport;
  if (!options.profile.empty()) question.prices = plan::readProfile(options.profile);
  return question;
}

// Microseconds, by algorithm: what the measuring programs take here.
using Measured = std::map<schedule::Algorithm, double>;

Measured measured(const Question& question, const Answer& answer, bool atHand) {
  if (!atHand || answer.onGpus || question.hosts > 1)
    tools::refuse("--measure is for ranks on this machine's host memory: name no system, no file, and one node");
  tune::Wish wish;
  wish.collectives = {question.collective};
  wish.transports = {question.transport};
  wish.ranks = {answer.cluster.ranksPerHost};
  wish.minBytes = wish.maxBytes = question.bytes;
  wish.rounds = kMeasuredRounds;
  const std::vector<Collective> tunable = tune::tunable();
  if (std::ranges::find(tunable, question.collective) == tunable.end())
    tools::refuse(fmt::format("{} has one algorithm only: there is nothing to compare", nameOf(question.collective)));
  Measured times;
  const tune::Sweep sweep = tune::measure(wish);
  for (const tune::Cell& cell : sweep.cells)
    for (const auto& [algorithm, rounds] : cell.times) times[algorithm] = cell.us(algorithm);
  return times;
}

std::string_view protocolOf(const Candidate& one) { return one.protocol ? nameOf(*one.protocol) : "-"; }

std::string headOf(const Answer& answer, const std::string& what) {
  const sim::Cluster& cluster = answer.cluster;
  return fmt::format("{} among {} ranks ({}, nodes: {} of {} {})\n\n", what, cluster.ranks(), cluster.name,
                     cluster.hosts, cluster.ranksPerHost, answer.onGpus ? "GPUs" : "ranks on cores");
}

std::string candidatesText(const Answer& answer, const Measured& times) {
  std::string text =
      fmt::format("  {:<14}{:<10}{:>9}{:>15}{:>14}{}{}\n", "algorithm", "protocol", "channels", "predicted us",
                  "busbw GB/s", answer.onGpus ? "" : "       links ms", times.empty() ? "" : "    measured us");
  for (const Candidate& one : answer.candidates) {
    const auto time = times.find(one.algorithm);
    text += fmt::format("{} {:<14}{:<10}{:>9}{:>15.1f}{:>14.2f}{}{}\n", &one == &answer.choice() ? '>' : ' ',
                        nameOf(one.algorithm), protocolOf(one), one.channels, one.us, one.busGBs,
                        answer.onGpus ? "" : fmt::format("{:>15.1f}", one.setUpUs / 1e3),
                        time == times.end() ? "" : fmt::format("{:>15.1f}", time->second));
  }
  return text;
}

std::string ringsText(const topology::System& system, const rings::Rings& rings) {
  if (rings.rings.empty()) return "";
  std::string text = fmt::format("\nRings that a node's links carry: {} of {:.1f} GB/s, neighbours {}{}\n",
                                 rings.rings.size(), rings.gigabytes, nameOf(rings.among),
                                 rings.rings.front().entry < 0 ? "" : fmt::format(", NICs {}", nameOf(rings.toNic)));
  for (const rings::Ring& ring : rings.rings) text += fmt::format("  {}\n", textOf(system, ring));
  return text;
}

// What the library's own ring, which has one order for all channels, goes by.
std::string orderText(const topology::System& system, const Answer& answer) {
  const rings::HostLinks& links = answer.links;
  if (links.order.size() < 2) return "";
  const std::vector<int> gpus = byNumber(system, topology::DeviceKind::kGpu);
  std::vector<std::string> names;
  for (const int rank : links.order) names.push_back(nameOf(system, gpus[static_cast<size_t>(rank)]));
  return fmt::format(
      "\nOrder of a node's ranks in rings: {:.1f} GB/s to the next, {:.1f} GB/s to any other, neighbours {}\n"
      "  {}\n",
      links.ringGBs, links.pairGBs, nameOf(links.along), fmt::join(names, " - "));
}

std::string waysText(const Answer& answer) {
  std::string text = "\nLinks\n";
  for (const explain::Way& way : answer.ways) {
    text += fmt::format("  {:<26}{:>8.1f} GB/s  {}\n", way.between, way.gigabytes, way.over);
    if (!way.notFaster.empty()) text += fmt::format("  {:<41}not faster: {}\n", "", way.notFaster);
  }
  return text;
}

std::string textOf(const topology::System& system, const Question& question, const Answer& answer,
                   const Measured& times) {
  const std::string what = fmt::format("{} of {}", nameOf(question.collective), byteSizeText(question.bytes));
  std::string text = headOf(answer, what) + candidatesText(answer, times);
  if (!answer.excluded.empty()) text += "\nLeft out\n";
  for (const std::string& each : answer.excluded) text += fmt::format("  {}\n", each);
  text += orderText(system, answer) + ringsText(system, answer.rings) + waysText(answer);
  for (const std::string& each : answer.warnings) text += fmt::format("\nWarning: {}\n", each);
  return text;
}

Json candidateJson(const Candidate& one, const Measured& times) {
  Json json{{"algorithm", nameOf(one.algorithm)}};
  if (one.protocol) json["protocol"] = nameOf(*one.protocol);
  json.update(Json{{"channels", one.channels}, {"predicted_us", one.us}, {"bus_gb_per_s", one.busGBs}});
  if (!one.protocol) json["links_us"] = one.setUpUs;
  if (const auto time = times.find(one.algorithm); time != times.end()) json["measured_us"] = time->second;
  return json;
}

Json jsonOf(const topology::System& system, const Question& question, const Answer& answer, const Measured& times) {
  Json json{{"system", answer.cluster.name},
            {"nodes", answer.cluster.hosts},
            {"ranks", answer.cluster.ranks()},
            {"operation", commandName(question.collective)},
            {"bytes", question.bytes},
            {"choice", candidateJson(answer.choice(), times)},
            {"others", Json::array()},
            {"left_out", answer.excluded},
            {"rings", Json::array()},
            {"ring_gb_per_s", answer.rings.gigabytes},
            {"ring_order", answer.links.order},
            {"to_next_gb_per_s", answer.links.ringGBs},
            {"to_any_gb_per_s", answer.links.pairGBs},
            {"links", Json::array()},
            {"warnings", answer.warnings}};
  for (size_t i = 1; i < answer.candidates.size(); ++i)
    json["others"].push_back(candidateJson(answer.candidates[i], times));
  for (const rings::Ring& ring : answer.rings.rings) json["rings"].push_back(textOf(system, ring));
  for (const explain::Way& way : answer.ways)
    json["links"].push_back(
        {{"between", way.between}, {"over", way.over}, {"gb_per_s", way.gigabytes}, {"not_faster", way.notFaster}});
  return json;
}

std::string nextText(const Answer& answer) {
  if (answer.candidates.size() < 2) return "-";
  const Candidate& next = answer.candidates[1];
  return fmt::format("{}{}, {:.1f} us", nameOf(next.algorithm),
                     next.protocol ? fmt::format(" by {}", protocolOf(next)) : "", next.us);
}

// A line for each size: what is chosen, and what would have been next.
std::string sweepText(const topology::System& system, const std::string& name, Question question,
                      const std::vector<size_t>& sizes) {
  std::string head, lines = fmt::format("{:>8}  {:<14}{:<10}{:>9}{:>15}{:>14}  {}\n", "size", "algorithm", "protocol",
                                        "channels", "predicted us", "busbw GB/s", "next best");
  for (const size_t bytes : sizes) {
    question.bytes = bytes;
    const Answer answer = explain::explain(system, name, question);
    head = headOf(answer, std::string(nameOf(question.collective)));
    const Candidate& best = answer.choice();
    lines +=
        fmt::format("{:>8}  {:<14}{:<10}{:>9}{:>15.1f}{:>14.2f}  {}\n", byteSizeText(bytes), nameOf(best.algorithm),
                    protocolOf(best), best.channels, best.us, best.busGBs, nextText(answer));
  }
  return head + lines;
}

}  // namespace

void describePlan(CLI::App& app, PlanOptions& options) {
  tools::describe(app, options);
  app.get_option("--nodes")->check(CLI::Range(1, 65536));
  app.add_option("--algo", options.algo, "One algorithm, some (ring,tree) or all but some (^tree)");
  app.add_option("--protocol", options.protocol, "The same for protocols on GPUs: simple, ll, ll128");
  app.add_option("--channels", options.channels, "So many channels")->check(CLI::Range(1, 64));
  app.add_option("--transport", options.transport, "What joins ranks of a node on host memory: p2p, shm or tcp")
      ->capture_default_str();
  app.add_option("--profile", options.profile, "Prices on host memory, from a file of tutti-tune (TUTTI_PROFILE)");
  app.add_flag("--measure", options.measure, "On this machine: also what each algorithm takes");
  app.add_option("--format", options.format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
}

std::string planText(const topology::System& system, const std::string& name, bool atHand, const PlanOptions& options) {
  Question question = questionOf(options);
  const std::vector<size_t> sizes = tools::sizesOf(options);
  question.bytes = sizes.back();
  if (options.sweep && (options.measure || options.format == "json"))
    tools::refuse("--sweep is a table of what is predicted: leave --measure and --format json to one size");
  if (options.sweep) return sweepText(system, name, question, sizes);
  const Answer answer = explain::explain(system, name, question);
  const Measured times = options.measure ? measured(question, answer, atHand) : Measured();
  if (options.format == "json") return jsonOf(system, question, answer, times).dump(2) + "\n";
  return textOf(system, question, answer, times);
}

}  // namespace tutti::topo
