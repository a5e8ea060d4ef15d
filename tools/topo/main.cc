// tutti-topo: shows what a machine looks like, and how far it is from each GPU to each NIC.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"
#include "catalog/known_systems.h"
#include "command.h"
#include "flushed.h"
#include "topo/show.h"
#include "exchange/nccl_xml.h"

namespace tutti::topo {
namespace {

constexpr int kTrouble = 2;

struct Options {
  std::string file, system, format = "text", made;
};

topology::System systemOf(const Options& options) {
  if (!options.system.empty()) return topology::makeKnownSystem(options.system);
  if (!options.file.empty()) return topology::readNcclXmlFile(options.file);
  throw Error(ErrorCode::kInvalidArgument,
              "the machine at hand cannot be detected yet: name a file in NCCL's XML, or a known system with --system");
}

// The format has no place for remarks.
std::string xmlOf(const topology::System& system) {
  for (const std::string& remark : system.remarks) fmt::print(stderr, "tutti-topo: remark: {}\n", remark);
  return topology::writeNcclXml(system);
}

std::string show(const Options& options) {
  const topology::System system = systemOf(options);
  if (options.format == "xml") return xmlOf(system);
  return options.format == "json" ? showJson(system) : showText(system);
}

std::string names() {
  std::string text = "Known systems:\n";
  for (const topology::KnownSystem& one : topology::knownSystems())
    text += fmt::format("  {:<26}{}\n", one.name, one.about);
  return text;
}

void describe(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  app.footer(names());
  CLI::App* show = app.add_subcommand("show", "Show a system: its tree, paths between GPUs and NICs, and warnings");
  CLI::Option* file = show->add_option("FILE", options.file, "A system in NCCL's XML (NCCL_TOPO_FILE)");
  show->add_option("--system", options.system, "One that is known by this name")->excludes(file);
  show->add_option("--format", options.format, "text, xml (NCCL's) or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "xml", "json"}));
  CLI::App* make = app.add_subcommand("make", "Write a known system in NCCL's XML to standard output");
  make->add_option("NAME", options.made, "Its name")->required();
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Shows what a machine looks like to who plans collectives on it. Ends with 0, or with 2 when something "
      "cannot be read, is unknown or cannot be written.",
      "tutti-topo");
  describe(app, options);
  return tools::runCommand(app, argc, argv, kTrouble, [&] {
    fmt::print("{}", app.got_subcommand("make") ? xmlOf(topology::makeKnownSystem(options.made)) : show(options));
  });
}

}  // namespace
}  // namespace tutti::topo

int main(int argc, char** argv) {
  using namespace tutti;
  return tools::flushed("tutti-topo", topo::kTrouble, [=] { return topo::run(argc, argv); });
}
