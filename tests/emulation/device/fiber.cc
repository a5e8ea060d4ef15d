#include "emulation/device/fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <mutex>
#include <system_error>
#include <utility>

#include "emulation/device/sanitizers.h"

namespace tutti::emulation {
namespace {

namespace context = boost::context::detail;

constexpr size_t kPage = 4096;
#if defined(TUTTI_EMULATION_ADDRESS) || defined(TUTTI_EMULATION_THREAD)
constexpr size_t kStackBytes = 256 * 1024;  // frames are larger, and reports are written on them
#else
constexpr size_t kStackBytes = 64 * 1024;
#endif

struct Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Fiber>> idle;
};

Pool& pool() {
  static auto* const pool = new Pool;  // outlives every thread of the program
  return *pool;
}

}  // namespace

struct Fiber::Switches {
  static void enter(context::transfer_t from) {
    auto* fiber = static_cast<Fiber*>(from.data);
    fiber->outside_ = from.fctx;
    sanitizers::enterStack(nullptr, &fiber->outsideStack_, &fiber->outsideBytes_);
    fiber->function_(fiber->argument_);
    fiber->leaveForGood();
  }
};

Fiber::Fiber() : threadInside_(sanitizers::createThread()) {
  void* memory = mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "no memory for a fiber's stack");
  mapping_ = static_cast<std::byte*>(memory);
  // Without a guard page when the process may have no more mappings: then only an overflow goes unseen.
  (void)mprotect(mapping_, kPage, PROT_NONE);
}

Fiber::~Fiber() {
  munmap(mapping_, kPage + kStackBytes);
  sanitizers::destroyThread(threadInside_);
}

void Fiber::start(void (*function)(void*), void* argument) {
  std::byte* stack = mapping_ + kPage;
  sanitizers::allow(stack, kStackBytes);
  function_ = function;
  argument_ = argument;
  fakeInside_ = nullptr;
  fresh_ = true;
  inside_ = context::make_fcontext(stack + kStackBytes, kStackBytes, Switches::enter);
}

void Fiber::resume() {
  threadOutside_ = sanitizers::currentThread();
  sanitizers::leaveStack(&fakeOutside_, mapping_ + kPage, kStackBytes);
  sanitizers::switchTo(threadInside_, std::exchange(fresh_, false));
  inside_ = context::jump_fcontext(inside_, this).fctx;
  sanitizers::enterStack(fakeOutside_, nullptr, nullptr);
}

void Fiber::suspend() {
  sanitizers::leaveStack(&fakeInside_, outsideStack_, outsideBytes_);
  sanitizers::switchTo(threadOutside_, false);
  outside_ = context::jump_fcontext(outside_, nullptr).fctx;
  sanitizers::enterStack(fakeInside_, &outsideStack_, &outsideBytes_);
}

void Fiber::leaveForGood() {
  sanitizers::leaveStack(nullptr, outsideStack_, outsideBytes_);
  sanitizers::switchTo(threadOutside_, true);
  context::jump_fcontext(outside_, nullptr);
}

// The thread sanitizer must hear that what the fiber did comes before what happens to its stack next: as if it ended.
void Fiber::abandon() {
  void* const self = sanitizers::currentThread();
  sanitizers::switchTo(threadInside_, std::exchange(fresh_, false));
  sanitizers::switchTo(self, true);
  sanitizers::destroyThread(threadInside_);  // with its calls, that never return
  threadInside_ = sanitizers::createThread();
}

std::vector<std::unique_ptr<Fiber>> takeFibers(size_t count) {
  std::vector<std::unique_ptr<Fiber>> fibers;
  fibers.reserve(count);
  {
    const std::lock_guard lock(pool().mutex);
    for (auto& idle = pool().idle; fibers.size() < count && !idle.empty(); idle.pop_back())
      fibers.push_back(std::move(idle.back()));
  }
  while (fibers.size() < count) fibers.push_back(std::make_unique<Fiber>());
  return fibers;
}

void giveFibers(std::vector<std::unique_ptr<Fiber>> fibers) {
  const std::lock_guard lock(pool().mutex);
  for (auto& fiber : fibers) pool().idle.push_back(std::move(fiber));
}

}  // namespace tutti::emulation
