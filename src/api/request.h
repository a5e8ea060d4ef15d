// What a tuttiRequest_t points to: a shell around an operation, which outlives it as a communicator's does.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "comm/communicator.h"
#include "team/executor.h"
#include "team/operation.h"
#include "tutti/tutti.h"

struct tuttiRequest {
  uint32_t generation = 0;  // of the process that made it: see process/fork.h
  tuttiComm_t comm = nullptr;
  std::weak_ptr<tutti::comm::Communicator> communicator;  // that `comm` stood for
  std::atomic<uint32_t> state{0};                         // of the bits below

  // What a start takes, for which whoever starts it needs no lock. Empty: it is not persistent.
  struct Persistent {
    tutti::comm::Call call;
    tutti::comm::CallStream stream;
  };
  std::optional<Persistent> persistent;

  std::mutex
      mutex;  // guards the next and `communicator`, but from whoever starts it, and before the request is handed out
  std::shared_ptr<tutti::comm::Operation> operation;
};

namespace tutti::api {

inline constexpr uint32_t kStarting = 1;  // a thread is in tuttiRequestStart
inline constexpr uint32_t kAwaited = 4;   // and others wait for it to leave
inline constexpr uint32_t kFreed = 2;     // tuttiRequestFree was called: whoever leaves last lets all go

}  // namespace tutti::api
