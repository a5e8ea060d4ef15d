#include "perf/launch.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "perf/failure.h"

namespace tutti::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kParentVariable = "TUTTI_PERF_PARENT";
// How long the other ranks may take to notice, and to say so, that one has failed.
constexpr auto kGrace = std::chrono::seconds(3);

bool isSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// The unique id lies in a memory file that the children inherit: neither the command line nor the environment shows it.
class IdFile {
 public:
  explicit IdFile(const tuttiUniqueId& id) : fd_(memfd_create("tutti-id", 0)) {
    std::string hex;
    for (const char c : id.internal) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    if (fd_ < 0 || write(fd_, hex.data(), hex.size()) != static_cast<ssize_t>(hex.size())) {
      throw Failure(fmt::format("cannot hand over the unique id: {}", std::strerror(errno)));
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

std::vector<std::string> environmentFor(int rank, int ranks, const IdFile& id) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("TUTTI_ID=") && !text.starts_with("TUTTI_ID_FILE=") && !text.starts_with("TUTTI_ROOT=") &&
        !text.starts_with("TUTTI_SIZE="))
      result.emplace_back(text);
  }
  result.push_back(fmt::format("TUTTI_RANK={}", rank));
  result.push_back(fmt::format("TUTTI_SIZE={}", ranks));
  result.push_back(fmt::format("TUTTI_ID_FILE={}", id.path()));
  result.push_back(fmt::format("{}={}", kParentVariable, getpid()));
  return result;
}

std::vector<char*> pointersTo(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn, not fork: the library may have threads since it made the id.
pid_t spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, &attributes, pointersTo(arguments).data(),
                                pointersTo(environment).data());
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? pid : (errno = error, -1);
}

class Family {
 public:
  explicit Family(const Options& options) : ranks_(options.ranks) {
    // Blocked before the library starts threads, which inherit the mask: the signals then wait for sigtimedwait.
    sigemptyset(&signals_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~Family() {
    signalAll(SIGKILL);
    for (const Child& child : alive_) waitpid(child.pid, nullptr, 0);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  void start(const std::vector<std::string>& arguments) {
    tuttiUniqueId id;
    require(tuttiGetUniqueId(&id), "tuttiGetUniqueId", -1, nullptr);
    const IdFile file(id);
    for (int rank = 0; rank < ranks_; ++rank) {
      const pid_t pid = spawn(arguments, environmentFor(rank, ranks_, file));
      if (pid < 0) throw Failure(fmt::format("cannot start the process of rank {}: {}", rank, std::strerror(errno)));
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
    const int signal = deadline_ ? sigtimedwait(&signals_, &info, &pause) : sigwaitinfo(&signals_, &info);
    if (signal <= 0 || signal == SIGCHLD) return;
    stopped_ = true;
    signalAll(signal);
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
    const bool asTold = WIFSIGNALED(status) && (ending_ || stopped_);
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

  int ranks_;
  sigset_t signals_;
  std::vector<Child> alive_;
  std::optional<Clock::time_point> deadline_;  // set once a rank has failed, or we were told to stop
  bool ending_ = false, stopped_ = false;
  int status_ = 0;
};

}  // namespace

// The variables by which tuttiCommInitEnv knows a launcher, but for those that number pods: there the programs start
// ranks of their own in each, unless they are told otherwise.
bool launched() {
  if (isSet("TUTTI_LAUNCHER")) return true;
  for (const char* rank : {"TUTTI_RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
                           "PALS_RANKID", "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK", "PMIX_RANK", "TF_CONFIG"})
    if (isSet(rank)) return true;
  if (isSet("RANK") && isSet("WORLD_SIZE") && (isSet("LOCAL_RANK") || isSet("MASTER_ADDR"))) return true;
  if (isSet("JOB_COMPLETION_INDEX") && isSet("TUTTI_SIZE")) return true;
  // Inside a batch script SLURM_PROCID is set as well, without a step.
  return isSet("SLURM_PROCID") && isSet("SLURM_STEP_ID");
}

int launchLocal(const Options& options) {
  Family family(options);
  family.start(options.arguments);
  return family.waitForAll();
}

void followParent() {
  const char* parent = std::getenv(kParentVariable);
  if (parent == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(getppid()) != parent) std::_Exit(1);  // it died before we could say so
}

std::string describeEnd(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace tutti::perf
