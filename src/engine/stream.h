// A stream of a host communicator: an in-order queue of jobs with a thread of its own.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"

namespace tutti::engine {

class Stream {
 public:
  Stream();
  ~Stream();  // waits for what is queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // A job reports its failure by throwing Error. Any thread.
  void submit(std::function<void()> job);
  // Waits until the queue is empty; rethrows the first Error since the last call.
  void synchronize();
  bool idle();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool running_ = false, closing_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace tutti::engine
