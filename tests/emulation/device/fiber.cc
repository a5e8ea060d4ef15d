#include "emulation/device/fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <system_error>

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
  inside_ = context::make_fcontext(stack + kStackBytes, kStackBytes, Switches::enter);
  void* const self = sanitizers::currentThread();
  sanitizers::release(&tag_);
  sanitizers::switchTo(threadInside_);
  sanitizers::acquire(&tag_);
  sanitizers::switchTo(self);
}

void Fiber::resume() {
  threadOutside_ = sanitizers::currentThread();
  sanitizers::leaveStack(&fakeOutside_, mapping_ + kPage, kStackBytes);
  sanitizers::switchTo(threadInside_);
  inside_ = context::jump_fcontext(inside_, this).fctx;
  sanitizers::enterStack(fakeOutside_, nullptr, nullptr);
}

void Fiber::suspend() {
  sanitizers::leaveStack(&fakeInside_, outsideStack_, outsideBytes_);
  sanitizers::switchTo(threadOutside_);
  outside_ = context::jump_fcontext(outside_, nullptr).fctx;
  sanitizers::enterStack(fakeInside_, &outsideStack_, &outsideBytes_);
}

void Fiber::leaveForGood() {
  sanitizers::leaveStack(nullptr, outsideStack_, outsideBytes_);
  sanitizers::release(&tag_);
  sanitizers::switchTo(threadOutside_);
  context::jump_fcontext(outside_, nullptr);
}

void Fiber::join() { sanitizers::acquire(&tag_); }

// As if the run had ended where it is.
void Fiber::abandon() {
  void* const self = sanitizers::currentThread();
  sanitizers::switchTo(threadInside_);
  sanitizers::release(&tag_);
  sanitizers::switchTo(self);
}

}  // namespace tutti::emulation
