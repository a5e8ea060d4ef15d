// tutti-tune: measures the prices by which algorithms are compared on the machine at hand, and judges the choices.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/version.h"
#include "command.h"
#include "flushed.h"
#include "plan/profile_file.h"
#include "tune/amend.h"
#include "tune/duel.h"
#include "tune/fit.h"
#include "tune/measure.h"
#include "tune/table.h"
#include "writable.h"

namespace tutti::tune {
namespace {

constexpr int kTrouble = 2;

struct Options {
  Wish wish;
  std::vector<std::string> operations, duels;
  std::string sweep, profile, output;
  bool all = false;
  DuelWish duel;
  Part part;  // of the ranks that a duel starts
};

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file) throw systemError(fmt::format("cannot write {}", path), errno);
}

void requireWritable(const std::string& path) {
  if (!tools::isWritable(path)) throw systemError(fmt::format("cannot write {}", path), errno);
}

void measureTo(Options& options) {
  for (const std::string& name : options.operations) options.wish.collectives.push_back(collectiveByCommand(name));
  if (options.wish.collectives.empty()) options.wish.collectives = tunable();
  if (options.wish.maxBytes < options.wish.minBytes)
    throw Error(ErrorCode::kInvalidArgument, "nothing would be measured: --max is less than --min");
  requireWritable(options.output);
  write(options.output, toJson(measure(options.wish)));
}

void fitTo(const Options& options) {
  Sweep sweep = readSweep(options.sweep);
  for (const std::string& path : options.duels)
    if (!amend(sweep, readOutcomes(path)))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: no cell of {} is in it: it is about another sweep", path, options.sweep));
  const plan::Profile prices = measuredProfile(sweep);
  write(options.output, plan::profileText(prices, fmt::format("tutti-tune of tutti {}: {}", kVersion, sweep.about)));
  fmt::print("As shipped: {}With {}: {}", tableOf(sweep, {}, false), options.output, tableOf(sweep, prices, false));
}

void check(const Options& options) {
  const plan::Profile prices = options.profile.empty() ? plan::Profile() : plan::readProfile(options.profile);
  fmt::print("{}", tableOf(readSweep(options.sweep), prices, options.all));
}

// What each match saw, a line each: the ratios, for other statistics than ours. At once: a duel that is cut has cost
// the time of those that it played. What the file had stays until there is the first.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path) {
    if (!path.empty()) requireWritable(path);
  }
  void add(const Outcome& outcome) {
    if (path_.empty()) return;
    if (!file_.is_open()) file_.open(path_, std::ios::binary | std::ios::trunc);
    file_ << toLine(outcome) << "\n" << std::flush;
    if (!file_) throw systemError(fmt::format("cannot write {}", path_), errno);
  }

 private:
  const std::string path_;
  std::ofstream file_;
};

void duelTo(const Options& options) {
  if (!options.duel.profile.empty()) plan::readProfile(options.duel.profile);  // before ranks are started
  Lines lines(options.output);
  const std::vector<Outcome> outcomes = duel(options.duel, [&](const Outcome& outcome) { lines.add(outcome); });
  fmt::print("{}", tableOf(outcomes, options.all));
}

void describePicked(CLI::App& app, DuelWish& wish) {
  app.add_option("SWEEP", wish.sweep, "What `measure` wrote: who may be faster than whom")->required();
  app.add_option("--cells", wish.cells, "Only those whose title has this regular expression: 'shm 4 ', '^reduce p2p'")
      ->capture_default_str();
  app.add_option("--limit", wish.most, "At most so many of these, spread evenly; 0: all")->capture_default_str();
  app.add_option("--seconds", wish.seconds, "To spend on a cell, about, before it counts as undecided")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
}

void describeDuel(CLI::App& app, Options& options) {
  CLI::App* duel = app.add_subcommand("duel", "Judge the choices by new times, in turn with what may be faster");
  describePicked(*duel, options.duel);
  duel->add_option("--profile", options.duel.profile, "By its prices; else by those that the library ships with");
  duel->add_option("-o,--output", options.output, "Also write the ratios of all rounds, a line of JSON for each cell");
  duel->add_flag("--all", options.all, "All lines, not only those of choices that were missed or are undecided");
  CLI::App* ranks = app.add_subcommand("duel-ranks", "What `duel` starts")->group("");
  describePicked(*ranks, options.duel);
  ranks->add_option("--transport", options.part.transport)->required();
  ranks->add_option("--ranks", options.part.ranks)->required();
}

void describeMeasure(CLI::App& app, Options& options) {
  CLI::App* measure = app.add_subcommand("measure", "Run every algorithm in turn, and write what each took: a sweep");
  measure->add_option("-o,--output", options.output, "The sweep's file")->required();
  measure->add_option("--operations", options.operations, "all_reduce,all_gather,...; all that have a choice")
      ->delimiter(',');
  measure->add_option("--transports", options.wish.transports, "p2p (threads), shm, tcp (processes)")
      ->delimiter(',')
      ->check(CLI::IsMember({"p2p", "shm", "tcp"}))
      ->capture_default_str();
  measure->add_option("--ranks", options.wish.ranks, "Numbers of ranks")
      ->delimiter(',')
      ->check(CLI::Range(2, 256))
      ->capture_default_str();
  measure->add_option("--min", options.wish.minBytes, "Bytes to begin with, by factors of 8 from there on")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(size_t{1}, size_t{1} << 40))
      ->capture_default_str();
  measure->add_option("--max", options.wish.maxBytes, "Bytes to end with; 64K, 16M")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  measure->add_option("--rounds", options.wish.rounds, "Times that all is measured; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

void describe(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  describeMeasure(app, options);
  CLI::App* fit = app.add_subcommand("fit", "Find the prices that suit a sweep: a profile, for TUTTI_PROFILE");
  fit->add_option("SWEEP", options.sweep, "What `measure` wrote")->required();
  fit->add_option("-o,--output", options.output, "The profile's file")->required();
  fit->add_option("--duel", options.duels,
                  "What `duel -o` wrote about it: where a choice lost, it counts as that slow");
  CLI::App* check = app.add_subcommand("check", "Say how the choices by a profile would do on a sweep");
  check->add_option("SWEEP", options.sweep, "What `measure` wrote")->required();
  check->add_option("--profile", options.profile, "Its prices; else those that the library ships with");
  check->add_flag("--all", options.all, "All lines, not only those of choices that are more than 10 % off");
  describeDuel(app, options);
}

void act(const CLI::App& app, Options& options) {
  if (app.got_subcommand("measure")) return measureTo(options);
  if (app.got_subcommand("duel")) return duelTo(options);
  if (app.got_subcommand("duel-ranks")) return playPart(options.duel, options.part);
  app.got_subcommand("fit") ? fitTo(options) : check(options);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Measures the prices by which tutti compares algorithms on the machine at hand, and says how well it chooses by "
      "them. Ends with 0, or with 2 when something cannot be read, measured or written.",
      "tutti-tune");
  describe(app, options);
  return tools::runCommand(app, argc, argv, kTrouble, [&] { act(app, options); });
}

}  // namespace
}  // namespace tutti::tune

int main(int argc, char** argv) {
  using namespace tutti;
  return tools::flushed("tutti-tune", tune::kTrouble, [=] { return tune::run(argc, argv); });
}
