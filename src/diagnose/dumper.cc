#include "diagnose/dumper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "diagnose/dump.h"
#include "process/fork.h"
#include "process/log.h"
#include "process/process_object.h"
#include "process/thread.h"

namespace tutti::comm {
namespace {

constexpr int kLookMs = 100;  // how often it looks for failures that nobody has reported

// What is written to the eventfd adds up: signals count in the upper half.
constexpr uint64_t kWork = 1, kSignal = uint64_t{1} << 32;

std::atomic<int> wakeFd{-1};
std::atomic<uint32_t> wakeProcess{0};  // a forked child has the handler, and may have a file of its own by that number

void wake(int fd, uint64_t what) noexcept {
  const ssize_t n = ::write(fd, &what, sizeof what);
  (void)n;  // full means that the thread is being woken already
}

void onSignal(int) noexcept {
  const int error = errno;
  const int fd = wakeFd.load(std::memory_order_relaxed);
  if (fd >= 0 && wakeProcess.load(std::memory_order_relaxed) == fork::generation()) wake(fd, kSignal);
  errno = error;
}

// False where the program has a handler of its own for it. A child made by fork has inherited ours.
bool signalIsFree() noexcept {
  struct sigaction now {};
  return ::sigaction(SIGUSR2, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         (now.sa_handler == SIG_DFL || now.sa_handler == onSignal);
}

// A program that holds the signal back on this thread may wait for it elsewhere (sigwait, signalfd): it keeps it.
bool signalIsHeld() noexcept {
  sigset_t held;
  return ::pthread_sigmask(SIG_BLOCK, nullptr, &held) != 0 || ::sigismember(&held, SIGUSR2) != 0;
}

void listenForSignal() noexcept {
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR2, &action, nullptr);
}

void takeSignal() noexcept {
  sigset_t ours;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGUSR2);
  ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
}

// 0, or why no file can be made in a folder, as an errno value.
int hindrance(const std::string& folder) noexcept {
  struct stat there {};
  if (::stat(folder.c_str(), &there) != 0) return errno;
  if (!S_ISDIR(there.st_mode)) return ENOTDIR;
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// Each host may have a folder of its own: the first rank there speaks.
bool speaksForHost(const Team& team) noexcept {
  const auto& infos = team.infos();
  const uint64_t mine = infos[static_cast<size_t>(team.rank())].hostId;
  const auto first = std::ranges::find(infos, mine, &topology::PeerInfo::hostId);
  return first - infos.begin() == team.rank();
}

// Said while there is time to make the folder, and not when the record is lost. Without memory for it, it is not said.
void warnIfUseless(const Team& team) noexcept try {
  static std::once_flag once;
  if (!speaksForHost(team)) return;
  std::call_once(once, [&] {
    const std::string& folder = team.config().dumpDirectory;
    if (const int error = hindrance(folder))
      log::warn("TUTTI_DUMP_DIR={}: {}: ranks that fail will leave no record. Make it a folder that they may write to",
                folder, errnoText(error));
  });
} catch (const std::exception&) {
}

}  // namespace

// The thread, which ends when the process does.
class Dumper::Writer : public Service {
 public:
  Writer(Dumper& dumper, bool takesSignal) : dumper_(dumper), takesSignal_(takesSignal) {}
  void run() override {
    if (takesSignal_) takeSignal();
    dumper_.work();
  }
  void hurry() override { dumper_.end(); }
  void halt() override { dumper_.end(); }

 private:
  Dumper& dumper_;
  const bool takesSignal_;
};

Dumper& Dumper::instance() { return ofThisProcess<Dumper>(); }

// Needs the mutex. The handler comes last: what it touches is there by then, and stays there if no thread can be had.
void Dumper::start() {
  if (wake_) return;
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake) throw systemError("cannot create an eventfd for writing dumps", errno);
  const bool free = signalIsFree(), takes = free && !signalIsHeld();
  wake_ = std::move(wake);
  try {
    BackgroundThreads::instance().start(std::make_shared<Writer>(*this, takes));
  } catch (const std::exception&) {
    wake_.reset();
    throw;
  }
  wakeProcess.store(fork::generation(), std::memory_order_relaxed);
  wakeFd.store(wake_.get(), std::memory_order_relaxed);
  if (free) listenForSignal();
}

void Dumper::begin() noexcept try {
  std::lock_guard lock(mutex_);
  start();
} catch (const std::exception& error) {  // add() tries again, and fails the communicator then
  log::warn("no records can be written yet: {}", error.what());
}

void Dumper::end() {
  wakeFd.store(-1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  ending_ = true;
  wake(wake_.get(), kWork);
}

void Dumper::add(const std::shared_ptr<Executor>& executor) {
  warnIfUseless(executor->team());
  std::lock_guard lock(mutex_);
  start();
  std::erase_if(living_, [](const auto& one) { return one.expired(); });
  living_.push_back(executor);
}

void Dumper::request(std::shared_ptr<Executor> executor, std::string why) {
  queue(std::move(executor), std::move(why));
  wake(wake_.get(), kWork);
}

void Dumper::queue(Living executor, std::string why) {
  std::lock_guard lock(mutex_);
  queue_.emplace_back(std::move(executor), std::move(why));
}

// The caller lets go of them without the mutex: the last reference to one ends it, and that may take its time.
std::vector<Dumper::Living> Dumper::living() {
  std::vector<Living> found;
  std::lock_guard lock(mutex_);
  for (const auto& one : living_)
    if (auto executor = one.lock()) found.push_back(std::move(executor));
  return found;
}

void Dumper::queueAll() {
  const std::vector<Living> all = living();
  if (all.empty())
    log::warn("SIGUSR2: no record is written, for this process has no communicator now, or one that it still joins");
  for (const Living& executor : all) queue(executor, "SIGUSR2");
}

// A rank that is making no call learns nothing itself of another's failure. What ends with its process has not failed:
// it has left, or nobody has taken it down. What cannot be queued now, for lack of memory, stays unclaimed for the next
// look.
void Dumper::queueFailed() {
  for (Living& executor : living()) {
    const Team& team = executor->team();
    if (!team.broken() || team.hasDump() || team.endedWithProcess()) continue;
    std::string why = team.failure("no call").what();
    std::lock_guard lock(mutex_);
    queue_.emplace_back(executor, std::move(why));
    if (!team.claimDump()) queue_.pop_back();
  }
}

void Dumper::work() {
  bool signalled = false;
  for (;;) {
    uint64_t what = 0;
    pollfd news{wake_.get(), POLLIN, 0};
    if (::poll(&news, 1, kLookMs) > 0 && ::read(wake_.get(), &what, sizeof what) < 0 && errno != EINTR) return;
    signalled = signalled || what >= kSignal;
    lookRound(signalled);
    std::unique_lock lock(mutex_);
    writeQueued(lock);
    if (ending_) return;
  }
}

// No memory is no reason to stop: the next round tries again what this one had to leave.
void Dumper::lookRound(bool& signalled) noexcept {
  try {
    if (signalled) queueAll();
    signalled = false;
    queueFailed();
  } catch (const std::exception&) {
  }
}

void Dumper::writeQueued(std::unique_lock<std::mutex>& lock) {
  while (!queue_.empty()) {
    auto [executor, why] = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    try {
      const Team& team = executor->team();
      const std::string path = team.config().dumpDirectory + "/" + dumpName(team);
      writeDump(*executor, path, why);
      log::info("wrote {}", path);
    } catch (const std::exception& e) {
      log::warn("{}", e.what());
    }
    executor.reset();
    lock.lock();
  }
}

}  // namespace tutti::comm
