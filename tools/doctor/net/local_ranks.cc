#include "doctor/net/local_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "join/open_root.h"
#include "process/fd.h"
#include "settings/settings.h"

namespace tutti::doctor::net {
namespace {

// The unique id lies in a memory file that the ranks inherit, so that no command line and no environment shows it.
UniqueFd idFile(const control::UniqueId& id) {
  const std::string hex = control::toHex(control::encode(id));
  UniqueFd file(::memfd_create("tutti-id", 0));
  if (file.get() < 0 || ::fchmod(file.get(), 0600) != 0 ||
      ::write(file.get(), hex.data(), hex.size()) != static_cast<ssize_t>(hex.size()))
    throw systemError("cannot tell the ranks where to meet, which takes a short file in memory", errno);
  return file;
}

// What says who a process is, is said anew.
bool isSaidAnew(std::string_view entry) {
  constexpr std::string_view kNames[] = {"TUTTI_LAUNCHER=", "TUTTI_RANK=", "TUTTI_SIZE=",       "TUTTI_ID=",
                                         "TUTTI_ID_FILE=",  "TUTTI_ROOT=", "TUTTI_LOCAL_RANK=", "TUTTI_LOCAL_SIZE="};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return entry.starts_with(name); });
}

std::vector<std::string> environmentFor(int rank, int ranks, const UniqueFd& id) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!isSaidAnew(*entry)) all.emplace_back(*entry);
  all.push_back("TUTTI_LAUNCHER=tutti");
  all.push_back(fmt::format("TUTTI_RANK={}", rank));
  all.push_back(fmt::format("TUTTI_SIZE={}", ranks));
  all.push_back(fmt::format("TUTTI_ID_FILE=/proc/self/fd/{}", id.get()));
  return all;
}

pid_t spawn(char** argv, std::vector<std::string> environment) {
  std::vector<char*> pointers;
  for (std::string& entry : environment) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv, pointers.data());
  if (error != 0) throw systemError("cannot start a rank", error);
  return pid;
}

// None is left behind.
class Family {
 public:
  ~Family() {
    for (const pid_t pid : alive_) ::kill(pid, SIGKILL);
    for (const pid_t pid : alive_) ::waitpid(pid, nullptr, 0);
  }
  void add(pid_t pid) { alive_.push_back(pid); }
  int await(int trouble) {
    int worst = 0;
    while (!alive_.empty()) {
      int status = 0;
      const pid_t pid = alive_.back();
      if (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
      alive_.pop_back();
      worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : trouble);
    }
    return worst;
  }

 private:
  std::vector<pid_t> alive_;
};

}  // namespace

int startLocally(int ranks, char** argv, int trouble) {
  const auto lifetime = Deadline::in(settings::milliseconds("TUTTI_JOIN_TIMEOUT_MS"));
  const UniqueFd id = idFile(control::openRoot(Network::fromEnvironment(), lifetime));
  Family family;
  for (int rank = 0; rank < ranks; ++rank) family.add(spawn(argv, environmentFor(rank, ranks, id)));
  return family.await(trouble);
}

void endWithParent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace tutti::doctor::net
