// One operation as whoever holds a request for it sees it: under way, or ended, and how. A persistent call is one that
// can be run again. Any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "team/call.h"

namespace tutti::comm {

class Operation {
 public:
  // What can be under way. A persistent call is made ready first, and may be started before that has ended.
  enum Part : uint32_t { kReadying = 1, kRunning = 2 };

  Operation() = default;
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Readied readied;  // of a persistent call: its executor's

  // --- of who makes calls: one thread at a time ---
  // False when it is under way already.
  bool begin(Part part) noexcept;
  // The same of one that runs in the caller's thread, which says by itself to those who ask that it does.
  bool renew() noexcept;
  // It will not come to it: the same as an end, unless an executor has taken it.
  void giveUp(Part part, const Error& why) noexcept;

  // --- of who runs it ---
  void take(Part part) noexcept { taken_.fetch_or(part, std::memory_order_relaxed); }
  void end(Part part) noexcept { close(part); }
  void end(Part part, const Error& why) noexcept;

  // --- of who waits ---
  // Nothing of it is under way.
  bool done() noexcept;
  // Throws the Error of what ended last, if it failed.
  void result() const;
  void wait() noexcept;

 protected:
  // Looks whether it has ended, where nobody says so by himself.
  virtual void look() noexcept {}
  virtual bool needsLooks() const noexcept { return false; }

 private:
  void close(Part part) noexcept;

  std::atomic<uint32_t> under_{0};  // way: parts
  std::atomic<uint32_t> taken_{0};  // parts: of those under way
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // guards why_
  std::optional<Error> why_;
};

// What such a call is of its operation.
inline Operation::Part partOf(const Call& call) noexcept {
  return call.onlyReadies ? Operation::kReadying : Operation::kRunning;
}

}  // namespace tutti::comm
