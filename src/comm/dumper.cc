#include "comm/dumper.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/error.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "comm/dump.h"

namespace tutti::comm {
namespace {

constexpr int kLookMs = 100;  // how often it looks for failures that nobody has reported

// What is written to the eventfd adds up: signals count in the upper half.
constexpr uint64_t kWork = 1, kSignal = uint64_t{1} << 32;

std::atomic<int> wakeFd{-1};

void wake(int fd, uint64_t what) noexcept {
  const ssize_t n = ::write(fd, &what, sizeof what);
  (void)n;  // full means that the thread is being woken already
}

void onSignal(int) noexcept {
  const int error = errno;
  if (const int fd = wakeFd.load(std::memory_order_relaxed); fd >= 0) wake(fd, kSignal);
  errno = error;
}

void listenForSignal() noexcept {
  struct sigaction now {};
  if (::sigaction(SIGUSR2, nullptr, &now) != 0 || now.sa_handler != SIG_DFL || (now.sa_flags & SA_SIGINFO)) return;
  now = {};
  now.sa_handler = onSignal;
  now.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR2, &now, nullptr);
}

}  // namespace

Dumper& Dumper::instance() {
  static Dumper dumper;
  return dumper;
}

Dumper::Dumper() : wake_(::eventfd(0, EFD_CLOEXEC)), generation_(fork::generation()) {
  if (!wake_) throw systemError("cannot create an eventfd for writing dumps", errno);
  wakeFd.store(wake_.get(), std::memory_order_relaxed);
  thread_ = std::thread([this] { work(); });
  listenForSignal();
}

Dumper::~Dumper() {
  wakeFd.store(-1, std::memory_order_relaxed);
  if (generation_ != fork::generation()) {  // a forked child has no such thread to wait for
    new std::thread(std::move(thread_));
    return;
  }
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake(wake_.get(), kWork);
  thread_.join();
}

void Dumper::add(const std::shared_ptr<Communicator>& communicator) {
  Dumper& self = instance();
  std::lock_guard lock(self.mutex_);
  std::erase_if(self.living_, [](const auto& one) { return one.expired(); });
  self.living_.push_back(communicator);
}

void Dumper::request(std::shared_ptr<const Communicator> communicator, std::string why) {
  Dumper& self = instance();
  {
    std::lock_guard lock(self.mutex_);
    self.queue_.emplace_back(std::move(communicator), std::move(why));
  }
  wake(self.wake_.get(), kWork);
}

void Dumper::queueAll() {
  std::lock_guard lock(mutex_);
  for (const auto& one : living_)
    if (auto communicator = one.lock()) queue_.emplace_back(std::move(communicator), "SIGUSR2");
}

// A rank that is making no call learns nothing itself of another's failure.
void Dumper::queueFailed() {
  std::lock_guard lock(mutex_);
  for (const auto& one : living_) {
    auto communicator = one.lock();
    if (!communicator || !communicator->broken() || !communicator->claimDump()) continue;
    std::string why = communicator->failure("no call").what();
    queue_.emplace_back(std::move(communicator), std::move(why));
  }
}

void Dumper::work() {
  for (;;) {
    uint64_t what = 0;
    pollfd news{wake_.get(), POLLIN, 0};
    if (::poll(&news, 1, kLookMs) > 0 && ::read(wake_.get(), &what, sizeof what) < 0 && errno != EINTR) return;
    if (what >= kSignal) queueAll();
    queueFailed();
    std::unique_lock lock(mutex_);
    writeQueued(lock);
    if (ending_) return;
  }
}

void Dumper::writeQueued(std::unique_lock<std::mutex>& lock) {
  while (!queue_.empty()) {
    auto [communicator, why] = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    try {
      const std::string path = communicator->config().dumpDirectory + "/" + dumpName(*communicator);
      writeDump(*communicator, path, why);
      log::info("wrote {}", path);
    } catch (const std::exception& e) {
      log::warn("{}", e.what());
    }
    communicator.reset();
    lock.lock();
  }
}

}  // namespace tutti::comm
