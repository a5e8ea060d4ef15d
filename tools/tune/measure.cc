#include "tune/measure.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "complain.h"
#include "topology/peer_info.h"

namespace tutti::tune {
namespace {

using schedule::Algorithm;
namespace fs = std::filesystem;

// Calls of a few microseconds need many, to tell them apart, and as many before them until all is in its place; long
// ones are long enough.
struct Part {
  size_t from, to;  // bytes
  const char *iterations, *warmups;
};
constexpr Part kParts[] = {{0, 32 << 10, "300", "100"}, {(32 << 10) + 1, SIZE_MAX, "10", "2"}};
constexpr size_t kFactor = 8;

// What the folder of this process has; for cleanAndEnd(), which may only ask what asks nothing.
struct Left {
  std::string folder, report, log;
};
Left left;

// Ctrl-C is the usual end of what takes ten minutes.
void cleanAndEnd(int signal) {
  for (const std::string* file : {&left.report, &left.log}) ::unlink(file->c_str());
  ::rmdir(left.folder.c_str());
  ::raise(signal);  // SA_RESETHAND: it ends this process, once the handler has returned
}

void cleanWhenCut() {
  struct sigaction action = {}, before = {};
  action.sa_handler = cleanAndEnd;
  action.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;  // nohup
    ::sigaction(signal, &action, nullptr);
  }
}

class Folder {
 public:
  Folder() {
    std::error_code error;
    std::string pattern = fs::temp_directory_path(error) / "tutti-tune-XXXXXX";
    if (error) throw systemError("there is no folder for temporary files (TMPDIR)", error.value());
    if (::mkdtemp(pattern.data()) == nullptr) throw systemError(fmt::format("cannot make {}", pattern), errno);
    path_ = pattern;
    left = {path_, report(), log()};
    cleanWhenCut();
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path report() const { return path_ / "report.json"; }
  fs::path log() const { return path_ / "log"; }

 private:
  fs::path path_;
};

// Its output goes to `log`. What it returned, or 128 and the signal that ended it.
int run(std::vector<std::string> command, const fs::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw systemError(fmt::format("cannot start {}", command[0]), error);
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended < 0) throw systemError(fmt::format("cannot wait for {}", command[0]), errno);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string contentOf(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

fs::path programFor(Collective collective) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / (commandName(collective) + "_perf");
  if (!fs::exists(program))
    throw Error(ErrorCode::kSystem,
                fmt::format("{} is not there: tutti-tune measures by the programs beside it", program.string()));
  return program;
}

// All sizes of one operation among the same ranks.
struct Series {
  Collective collective;
  std::string transport;
  int ranks;
};

class Measuring {
 public:
  // What is set for other jobs would be measured, and the model knows nothing of it.
  explicit Measuring(const Wish& wish) : wish_(wish) {
    for (const char* name : {"TUTTI_CHANNELS", "TUTTI_GROUP_SIZE", "TUTTI_REPRODUCIBLE", "TUTTI_PROFILE"})
      ::unsetenv(name);
  }

  Sweep sweep() {
    Sweep sweep;
    const topology::PeerInfo self = topology::describeSelf();
    sweep.cores = self.cores;
    sweep.about = fmt::format("{}, {} cores, {:%Y-%m-%d}, {} rounds", self.hostName, self.cores,
                              fmt::gmtime(std::time(nullptr)), wish_.rounds);
    const std::vector<Series> all = allSeries();
    for (const Series& series : all) steps_ += wish_.rounds * countOf(series);
    for (int round = 0; round < wish_.rounds; ++round)
      for (const Series& series : all) measure(series, sweep.cells);
    std::erase_if(sweep.cells, [](const Cell& cell) { return cell.bytes == 0 || cell.times.size() < 2; });
    return sweep;
  }

 private:
  std::vector<Series> allSeries() const {
    std::vector<Series> all;
    for (const Collective collective : wish_.collectives)
      for (const std::string& transport : wish_.transports)
        for (const int ranks : wish_.ranks) all.push_back({collective, transport, ranks});
    return all;
  }
  static int countOf(const Series& series) { return static_cast<int>(alternatives(series.collective).size()); }

  void measure(const Series& series, std::vector<Cell>& cells) {
    for (const Algorithm algorithm : alternatives(series.collective)) {
      tools::complain("[{}/{}] {}, {}, {} ranks, {}\n", ++step_, steps_, commandName(series.collective),
                      series.transport, series.ranks, nameOf(algorithm));
      for (const Part& part : kParts) measure(series, algorithm, part, cells);
    }
  }

  void measure(const Series& series, Algorithm algorithm, const Part& part, std::vector<Cell>& cells) {
    size_t from = wish_.minBytes;
    while (from < part.from) from *= kFactor;
    const size_t to = std::min(wish_.maxBytes, part.to);
    if (from > to) return;
    const fs::path report = folder_.report(), log = folder_.log();
    fs::remove(report);
    const std::vector<std::string> command = {programFor(series.collective),
                                              series.transport == "p2p" ? "--nthreads" : "--ranks",
                                              std::to_string(series.ranks),
                                              "--transport",
                                              series.transport,
                                              "--algo",
                                              std::string(nameOf(algorithm)),
                                              "-b",
                                              std::to_string(from),
                                              "-e",
                                              std::to_string(to),
                                              "-f",
                                              std::to_string(kFactor),
                                              "-n",
                                              part.iterations,
                                              "-w",
                                              part.warmups,
                                              "-c",
                                              "0",
                                              "-a",
                                              "3",
                                              "-z",
                                              endsInBarrier(series.collective) ? "1" : "0",
                                              "-J",
                                              report};
    if (const int status = run(command, log); status != 0)
      throw Error(ErrorCode::kSystem,
                  fmt::format("this ended with {}: {}\n{}", status, fmt::join(command, " "), contentOf(log)));
    try {
      take(series, algorithm, contentOf(report), cells);
    } catch (const nlohmann::json::exception& error) {
      throw Error(ErrorCode::kSystem, fmt::format("the report of this cannot be read: {}: {}\n{}",
                                                  fmt::join(command, " "), error.what(), contentOf(log)));
    }
  }

  // An algorithm that cannot do what is asked for is left out by the library, which takes another.
  static void take(const Series& series, Algorithm algorithm, const std::string& report, std::vector<Cell>& cells) {
    const auto whole = nlohmann::json::parse(report);
    for (const auto& row : whole.at("results")) {
      if (row.at("out_of_place").at("algorithm") != nameOf(algorithm)) continue;
      const size_t bytes = schedule::requestBytes(series.collective, row.at("size"), series.ranks);
      cellFor(series, bytes, cells).times[algorithm].push_back(row.at("out_of_place").at("time"));
    }
  }

  static Cell& cellFor(const Series& series, size_t bytes, std::vector<Cell>& cells) {
    const auto found = std::ranges::find_if(cells, [&](const Cell& cell) {
      return cell.collective == series.collective && cell.transport == series.transport && cell.ranks == series.ranks &&
             cell.bytes == bytes;
    });
    if (found != cells.end()) return *found;
    return cells.emplace_back(Cell{series.collective, series.transport, series.ranks, bytes, {}});
  }

  const Wish wish_;
  const Folder folder_;
  int step_ = 0, steps_ = 0;
};

}  // namespace

Sweep measure(const Wish& wish) {
  Sweep sweep = Measuring(wish).sweep();
  if (sweep.cells.empty())
    throw Error(ErrorCode::kInvalidArgument, "nothing was measured that more than one algorithm can do");
  return sweep;
}

}  // namespace tutti::tune
