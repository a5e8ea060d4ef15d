// One operation that Python has started: what is known of it, and what it needs to stay where it is.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::python {

// Asks `done` until it says yes or `timeout` (seconds) is over: false. Without the GIL, but signals are looked after:
// their handlers' exceptions, as KeyboardInterrupt, end the wait. `done` must not touch Python.
bool waitUntil(const std::function<bool()>& done, std::optional<double> timeout = std::nullopt);

class Operation {
 public:
  // `group`: that in which it was called, by its number; 0: in none.
  explicit Operation(uint64_t group) : group_(group) {}
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  tuttiRequest_t* place() noexcept { return &request_; }
  void keep(nanobind::object object) { keepers_.push_back(std::move(object)); }
  // Whether it has ended. Needs no GIL.
  bool poll();
  // Whether it has ended, which then lets go of its buffers. Throws nothing; errors are kept for wait() and test().
  bool ended();
  // Whether it has ended; raises its error, each time.
  bool test();
  // Raises its error, or tutti.Timeout when it goes on after `timeout` seconds, or tutti.InvalidUsage where this
  // thread's group has not ended in which it was called.
  void wait(std::optional<double> timeout);

 private:
  const uint64_t group_;
  tuttiRequest_t request_ = nullptr;
  std::mutex mutex_;  // of the next two: one thread may wait while another looks
  std::optional<tuttiResult_t> result_;
  std::string text_;
  std::vector<nanobind::object> keepers_;
};

}  // namespace tutti::python
