#include "perf/launch.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/limits.h"
#include "perf/environment.h"
#include "perf/failure.h"

namespace tutti::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kParentVariable = "TUTTI_PERF_PARENT";
// How long the other ranks may take to notice, and to say so, that one has failed.
constexpr auto kGrace = std::chrono::seconds(3);

// The unique id lies in a memory file that the children inherit: neither the command line nor the environment shows it.
class IdFile {
 public:
  explicit IdFile(const tuttiUniqueId& id) : fd_(memfd_create("tutti-id", 0)) {
    std::string hex;
    for (const char c : id.internal) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    // Memory files are made with every bit of the mode, and the library reads no id that others could.
    if (fd_ < 0 || fchmod(fd_, 0600) != 0 || write(fd_, hex.data(), hex.size()) != static_cast<ssize_t>(hex.size())) {
      throw Failure(fmt::format("cannot tell the ranks where to meet, which takes a short file in memory: {}{}",
                                std::strerror(errno), limitBehind(errno)));
    }
  }
  ~IdFile() { close(fd_); }
  IdFile(const IdFile&) = delete;
  IdFile& operator=(const IdFile&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

struct Child {
  pid_t pid;
  int rank;
};

Entries environmentFor(int rank, int ranks, const IdFile& id) {
  Entries result = withoutStrange(withoutLaunchers(wholeEnvironment()));
  result.push_back("TUTTI_LAUNCHER=tutti");
  result.push_back(fmt::format("TUTTI_RANK={}", rank));
  result.push_back(fmt::format("TUTTI_SIZE={}", ranks));
  result.push_back(fmt::format("TUTTI_ID_FILE={}", id.path()));
  result.push_back(fmt::format("{}={}", kParentVariable, getpid()));
  return result;
}

// What ps shows: which of the processes is which rank.
std::vector<std::string> argumentsFor(int rank, const Options& options) {
  std::vector<std::string> result = options.arguments;
  result.front() = fmt::format("{}: rank {}", options.program, rank);
  return result;
}

std::vector<char*> pointersTo(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn, not fork: the library may have threads since it made the id.
pid_t spawn(const std::vector<std::string>& arguments, const Entries& environment) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const sigset_t mask = recordSignalAlone();
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, &attributes, pointersTo(arguments).data(),
                                pointersTo(environment).data());
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? pid : (errno = error, -1);
}

class Family {
 public:
  Family(const Options& options, const HeldSignals& signals) : options_(options), signals_(signals) {}
  ~Family() {
    signalAll(SIGKILL);
    for (const Child& child : alive_) waitpid(child.pid, nullptr, 0);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  void start() {
    tuttiUniqueId id;
    require(tuttiGetUniqueId(&id), "tuttiGetUniqueId", -1, nullptr);
    const IdFile file(id);
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const pid_t pid = spawn(argumentsFor(rank, options_), environmentFor(rank, options_.ranks, file));
      if (pid < 0)
        throw Failure(fmt::format("cannot start the process of rank {} of {}: {}{}", rank, options_.ranks,
                                  std::strerror(errno), limitBehind(errno) + limitOfTasks(errno)));
      alive_.push_back({pid, rank});
    }
  }

  int waitForAll() {
    while (!alive_.empty()) {
      waitForSignal();
      reap();
      if (deadline_ && Clock::now() >= *deadline_) endTheRest();
    }
    return status_;
  }

 private:
  void waitForSignal() {
    timespec pause{0, 100'000'000};
    siginfo_t info;
    const int signal = deadline_ ? sigtimedwait(&signals_.all(), &info, &pause) : sigwaitinfo(&signals_.all(), &info);
    if (signal <= 0 || signal == SIGCHLD) return;
    signalAll(signal);
    if (signal == SIGUSR2) return;  // asks for records
    stopped_ = true;
    startGrace();
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = std::find_if(alive_.begin(), alive_.end(), [pid](const Child& c) { return c.pid == pid; });
      if (child == alive_.end()) continue;
      const int rank = child->rank;
      alive_.erase(child);
      if (status != 0) noteFailure(rank, pid, status);
    }
  }

  void noteFailure(int rank, pid_t pid, int status) {
    const bool asTold = WIFSIGNALED(status) ? ending_ || stopped_ : WEXITSTATUS(status) == EXIT_FAILURE;
    if (!asTold)
      std::fprintf(stderr, "rank %d (pid %d): %s\n", rank, static_cast<int>(pid), describeEnd(status).c_str());
    if (status_ == 0) status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    startGrace();
  }

  void startGrace() {
    if (!deadline_) deadline_ = Clock::now() + kGrace;
  }

  void endTheRest() {
    for (const Child& child : alive_) {
      std::fprintf(stderr, "rank %d (pid %d): still running after another rank's end: %s\n", child.rank,
                   static_cast<int>(child.pid), ending_ ? "killed" : "terminated");
    }
    signalAll(ending_ ? SIGKILL : SIGTERM);
    ending_ = true;
    deadline_ = Clock::now() + kGrace;
  }

  void signalAll(int signal) const {
    for (const Child& child : alive_) kill(child.pid, signal);
  }

  const Options& options_;
  const HeldSignals& signals_;
  std::vector<Child> alive_;
  std::optional<Clock::time_point> deadline_;  // set once a rank has failed, or we were told to stop
  bool ending_ = false, stopped_ = false;
  int status_ = 0;
};

}  // namespace

int launchLocal(const Options& options, const HeldSignals& signals) {
  Family family(options, signals);
  family.start();
  return family.waitForAll();
}

bool followParent(Options& options, const char* program) {
  const auto parent = variable(kParentVariable);
  if (!parent) return false;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool isThere = std::to_string(getppid()) == *parent;  // it may have died before we could say so
  if (!isThere) prctl(PR_SET_PDEATHSIG, 0);
  if (!isThere)
    throw UsageError(fmt::format(
        "{}={}: no such process started this one. The program sets it for the ranks that it starts: unset it",
        kParentVariable, *parent));
  prctl(PR_SET_NAME, program);
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length > 0) options.arguments.front().assign(path, static_cast<size_t>(length));
  return true;
}

std::string describeEnd(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace tutti::perf
