// What the sanitizers want to know, as functions that are nothing without them. The build says which are in use
// (TUTTI_EMULATION_ADDRESS, TUTTI_EMULATION_THREAD): files without a sanitizer's instrumentation need its runtime too.
#pragma once
#include <cstddef>

#ifdef TUTTI_EMULATION_ADDRESS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TUTTI_EMULATION_THREAD
#include <sanitizer/tsan_interface.h>
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace tutti::emulation::sanitizers {

#ifdef TUTTI_EMULATION_ADDRESS
// Around a switch to `stack`. `fake` keeps what belongs to the stack that is left; null: that one never runs again.
inline void leaveStack(void** fake, const void* stack, size_t bytes) {
  __sanitizer_start_switch_fiber(fake, stack, bytes);
}
inline void enterStack(void* fake, const void** from, size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, from, bytes);
}
inline void allow(const void* memory, size_t bytes) { __asan_unpoison_memory_region(memory, bytes); }
inline void forbid(const void* memory, size_t bytes) { __asan_poison_memory_region(memory, bytes); }
#else
inline void leaveStack(void**, const void*, size_t) {}
inline void enterStack(void*, const void**, size_t*) {}
inline void allow(const void*, size_t) {}
inline void forbid(const void*, size_t) {}
#endif

#ifdef TUTTI_EMULATION_THREAD
inline void* createThread() { return __tsan_create_fiber(0); }
inline void destroyThread(void* thread) { __tsan_destroy_fiber(thread); }
inline void* currentThread() { return __tsan_get_current_fiber(); }
inline void switchTo(void* thread) { __tsan_switch_to_fiber(thread, __tsan_switch_to_fiber_no_sync); }
// What came before release(tag) in one fiber comes before what follows acquire(tag) in another.
inline void release(void* tag) { __tsan_release(tag); }
inline void acquire(void* tag) { __tsan_acquire(tag); }
// Between the two, what this thread writes is compared with nobody's accesses.
inline void stopWatching() { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
inline void goOnWatching() { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
#else
inline void* createThread() { return nullptr; }
inline void destroyThread(void*) {}
inline void* currentThread() { return nullptr; }
inline void switchTo(void*) {}
inline void release(void*) {}
inline void acquire(void*) {}
inline void stopWatching() {}
inline void goOnWatching() {}
#endif

}  // namespace tutti::emulation::sanitizers
