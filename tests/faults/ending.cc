// A process that ends, forks, or unloads the library, whatever its communicators are doing: it ends as it wants to, and
// a child made by fork can make communicators of its own. The library is loaded by a module, as a plugin would.
#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "faults/ending_states.h"
#include "faults/support/options.h"
#include "faults/support/process.h"
#include "support/sanitized.h"

namespace {

using namespace tutti::faults;

constexpr const char* kUsage =
    R"(usage: tutti_ending [--short]
Lets a process exit, unload the library, and fork, in every state of its communicators, over p2p, shm and tcp; and fork
in many moments of a first join.
  --short  the form that the tests use: 40 of these moments instead of 2000)";

constexpr int kHangs = -1, kChildHangs = 98;
constexpr std::chrono::seconds kPatience{20};
// A sanitizer's own locks stay taken in a child, where another thread had them.
constexpr bool kForks = !tutti::kSanitized;

// Beside this program. A bare name would not do: a sanitizer opens it in our place, and looks elsewhere.
std::string modulePath() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / TUTTI_ENDING_STATES; }

struct Module {
  void* handle = ::dlopen(modulePath().c_str(), RTLD_NOW | RTLD_LOCAL);
  template <class Function>
  Function* find(const char* name) const {
    if (handle == nullptr) fmt::print(stderr, "{}\n", ::dlerror());
    return handle == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle, name));
  }
};

// In a process of its own: its exit status, a signal's number negated, or kHangs.
int runApart(std::chrono::seconds limit, const std::function<void()>& body) {
  std::fflush(nullptr);  // what the child inherits unwritten it would write again
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    std::exit(0);
  }
  int status = 0;
  const auto until = std::chrono::steady_clock::now() + limit * patience();
  while (std::chrono::steady_clock::now() < until) {
    if (::waitpid(pid, &status, WNOHANG) == pid)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -100 - WTERMSIG(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return kHangs;
}

// A handler that the library leaves behind must find its code.
void hearSignal() {
  struct sigaction now {};
  if (::sigaction(SIGUSR2, nullptr, &now) == 0 && now.sa_handler != SIG_DFL) ::raise(SIGUSR2);
}

void unload(const Module& module) {
  ::dlclose(module.handle);
  hearSignal();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for threads that would miss their code
}

// The child uses what it inherited of the library, the parent ends while its own threads go on.
void forkHere(const Module& module) {
  const auto tryIt = module.find<decltype(tryLibrary)>("tryLibrary");
  const int status = runApart(kPatience, [&] {
    if (const char* const fault = tryIt(); fault != nullptr) {
      fmt::print(stderr, "in a forked child: {}\n", fault);
      std::exit(1);
    }
  });
  if (status != 0) std::exit(status == kHangs ? kChildHangs : 99);
}

struct Ending {
  const char* name;
  void (*end)(const Module& module);
  bool suits(const EndingState& state) const {
    return end == unload ? !state.callers : end == forkHere ? kForks : true;
  }
};

constexpr Ending kExit{"exits", [](const Module&) {}}, kUnload{"unloads the library", unload}, kFork{"forks", forkHere};
constexpr EndingState kFirstJoin{"joining in the background", false, false};

// Some moments are short: a sleep would miss them.
void spin(std::chrono::microseconds span) {
  const auto until = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < until) {
  }
}

// How many went wrong, which is said: the process enters the state, and ends so long after. `transports`: nullptr
// leaves them to the library, which takes p2p.
int runCase(const Ending& ending, const EndingState& state, const char* transports, std::chrono::microseconds after) {
  if (!ending.suits(state)) return 0;
  const int status = runApart(2 * kPatience, [&] {
    if (transports != nullptr) ::setenv("TUTTI_TRANSPORT", transports, 1);
    const Module module;
    const auto enter = module.find<decltype(enterState)>("enterState");
    if (enter == nullptr || !enter(state.name)) std::exit(3);
    spin(after);
    ending.end(module);
  });
  if (status == 0) return 0;
  fmt::print("FAILED: a process {} {} us after it is in the state \"{}\", over {}: {}\n", ending.name, after.count(),
             state.name, transports == nullptr ? "p2p" : transports,
             status == kHangs        ? "it HANGS"
             : status == kChildHangs ? "its child HANGS"
                                     : fmt::format("status {}", status));
  return 1;
}

// A first join makes all that hangs on the process, in about a millisecond: a fork in every moment of that.
int forkInEveryMoment(int moments) {
  int faulty = 0;
  for (int moment = 0; moment < moments; ++moment)
    faulty += runCase(kFork, kFirstJoin, nullptr, std::chrono::microseconds(1000 * moment / moments));
  return faulty;
}

}  // namespace

// What threads hold while a process ends, and what a forked child has inherited of them, is no leak.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return 1; }

// What a thread had of a library's thread-local memory, another one frees when it is gone: the C library waits for the
// kernel's word of that, which no sanitizer sees.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:_dl_deallocate_tls";
}

int main(int argc, char** argv) {
  const Options options(argc, argv, kUsage);
  char folder[] = "/tmp/tutti-ending-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 2;
  ::setenv("TUTTI_DUMP_DIR", folder, 1);  // so that there is a thread that writes records
  int faulty = 0;
  for (const Ending& ending : {kExit, kUnload, kFork})
    for (const EndingState& state : kEndingStates)
      for (const char* transports : {static_cast<const char*>(nullptr), "shm", "tcp"})
        if (transports == nullptr || state.links)
          faulty += runCase(ending, state, transports, std::chrono::microseconds(0));
  if (kForks) faulty += forkInEveryMoment(options.has("short") ? 40 : 2000);
  std::filesystem::remove_all(folder);
  return faulty == 0 ? 0 : 1;
}
