// A stream of a host communicator: an in-order queue of jobs with a thread of its own.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"

namespace tutti::engine {

// Throws Error once the process ends, and what was queued on streams has been waited for.
void requireStreams();

class Stream {
 public:
  Stream();
  ~Stream();  // waits for what is queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // What is queued. All memory that queueing it takes is in it already.
  using Job = std::list<std::function<void()>>;
  static Job job(std::function<void()> body) {
    Job made;
    made.push_back(std::move(body));
    return made;
  }
  // A job reports its failure by throwing Error. Any thread.
  void submit(Job job) noexcept;
  // Waits until the queue is empty; rethrows the first Error since the last call.
  void synchronize();
  bool idle();

 private:
  void work();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Job queue_;
  bool running_ = false, closing_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace tutti::engine
