// tutti-topo: shows what a machine looks like, and how far it is from each GPU to each NIC.
#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "catalog/known_systems.h"
#include "command.h"
#include "complain.h"
#include "detect/complete.h"
#include "detect/hwloc_machine.h"
#include "detect/machine_at_hand.h"
#include "drawing/drawing.h"
#include "exchange/hwloc_xml.h"
#include "exchange/nccl_xml.h"
#include "exchange/system_file.h"
#include "exchange/xml_text.h"
#include "flushed.h"
#include "rings/search.h"
#include "topo/plan.h"
#include "topo/show.h"

namespace tutti::topo {
namespace {

constexpr int kTrouble = 2;

struct Options {
  std::string file, system, format = "text", made;
  bool complete = false;
  PlanOptions plan;

  bool atHand() const { return file.empty() && system.empty(); }
};

topology::System completedFile(const std::string& file) {
  topology::System system = topology::readDevicesFile(file);
  try {
    system = detect::completed(std::move(system), detect::detectDevices());
    connect(system);
  } catch (const Error& error) {
    topology::refuseXml(file, error.what());
  }
  return system;
}

topology::System systemOf(const Options& options) {
  if (!options.system.empty()) return topology::makeKnownSystem(options.system);
  if (options.atHand()) return detect::detectSystem();
  return options.complete ? completedFile(options.file) : topology::readSystemFile(options.file);
}

// The formats have no place for remarks.
void tellRemarks(const topology::System& system) {
  for (const std::string& remark : system.remarks) tools::complain("tutti-topo: remark: {}\n", remark);
}

std::string xmlOf(const topology::System& system) {
  tellRemarks(system);
  return topology::writeNcclXml(system);
}

// Of the machine at hand hwloc tells more than a system holds: cores, caches, disks.
std::string hwlocOf(const Options& options) {
  if (options.atHand()) return detect::hwlocXmlOfThisMachine();
  const topology::System system = systemOf(options);
  tellRemarks(system);
  return topology::writeHwlocXml(system);
}

std::string titleOf(const Options& options) {
  if (options.atHand()) return "this machine";
  return options.file.empty() ? options.system : std::filesystem::path(options.file).filename().string();
}

// Those that the links carry, or else that of ranks that nobody has ordered.
std::vector<drawing::Ring> ringsOver(const topology::System& system) {
  const rings::Rings found = rings::searchRings(system, topology::Paths(system), false);
  std::vector<drawing::Ring> drawn;
  for (const rings::Ring& ring : found.rings)
    drawn.push_back({fmt::format("ring of {:.1f} GB/s", found.gigabytes), ring.gpus});
  return drawn.empty() ? drawing::ringByNumber(system) : drawn;
}

std::string svgOf(const Options& options, const topology::System& system) {
  return drawing::drawSystem(system, titleOf(options), ringsOver(system));
}

std::string show(const Options& options) {
  if (options.format == "hwloc") return hwlocOf(options);
  const topology::System system = systemOf(options);
  if (options.format == "xml") return xmlOf(system);
  if (options.format == "svg") return svgOf(options, system);
  return options.format == "json" ? showJson(system) : showText(system);
}

// Which system a subcommand is about.
void describeSystem(CLI::App& app, Options& options) {
  CLI::Option* file = app.add_option("FILE,--input", options.file,
                                     "A system in NCCL's XML (NCCL_TOPO_FILE) or in hwloc's (lstopo); without "
                                     "a file, the machine at hand");
  app.add_option("--system", options.system, "One that is known by this name")->excludes(file);
  app.add_flag("--complete", options.complete, "Add to FILE what it leaves out and this machine has")->needs(file);
}

std::string plan(const Options& options) {
  return planText(systemOf(options), titleOf(options), options.atHand(), options.plan);
}

void describe(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  app.footer("Known systems:\n" + tools::knownNames());
  CLI::App* show = app.add_subcommand("show", "Show a system: its tree, paths between GPUs and NICs, and warnings");
  describeSystem(*show, options);
  show->add_option("--format", options.format, "text, svg (a picture), xml (NCCL's), hwloc (its XML) or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "svg", "xml", "hwloc", "json"}));
  CLI::App* plan = app.add_subcommand("plan", "Say what would be chosen for an operation on a system, and why");
  describeSystem(*plan, options);
  describePlan(*plan, options.plan);
  CLI::App* make = app.add_subcommand("make", "Write a known system in NCCL's XML to standard output");
  make->add_option("NAME", options.made, "Its name")->required();
}

int run(int argc, char** argv) {
  ::setenv("HWLOC_HIDE_ERRORS", "2", 0);  // where hwloc finds nothing, a remark says so
  Options options;
  CLI::App app(
      "Shows what a machine looks like to who plans collectives on it. Ends with 0, or with 2 when something "
      "cannot be read, is unknown or cannot be written.",
      "tutti-topo");
  describe(app, options);
  return tools::runCommand(app, argc, argv, kTrouble, [&] {
    fmt::print("{}", app.got_subcommand("make")   ? xmlOf(topology::makeKnownSystem(options.made))
                     : app.got_subcommand("plan") ? plan(options)
                                                  : show(options));
  });
}

}  // namespace
}  // namespace tutti::topo

int main(int argc, char** argv) {
  using namespace tutti;
  return tools::flushed("tutti-topo", topo::kTrouble, [=] { return topo::run(argc, argv); });
}
