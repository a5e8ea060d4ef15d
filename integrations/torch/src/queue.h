// Runs operations one after the other, in the order in which they were given, on threads of its own.
//
// One operation runs at a time. Its thread then tells those who wait, which may run callbacks of futures; and a
// callback may wait for a later operation (the PowerSGD hook of DDP does). So the queue goes on before they are told,
// if need be on one more thread. Most come back from telling at once: the last thread that is idle gives them a little
// time, the longer the more have not come back, so that callbacks which take long do not make a thread each.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "work.h"

namespace tutti_torch {

using WorkPtr = c10::intrusive_ptr<OperationWork>;

class Queue {
 public:
  // Does the operation, or throws what is wrong.
  using Body = std::function<void()>;

  Queue() : state_(std::make_shared<State>()) {}
  // Fails what has not begun, and waits for what runs: whoever owns this sees to it that that ends.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Runs it here and now where the caller would wait for it anyway and nothing is before it, else on a thread. Where
  // the system refuses the first one, the operation fails.
  void submit(const WorkPtr& work, Body body);
  // Waits until nothing is left to do, or the time is over: then false.
  bool drain(milliseconds time);
  // Fails what has not begun and all that comes later.
  void close(const std::exception_ptr& why);
  // In a child made by fork, where there are no threads and the mutex may be held for ever.
  void forget() noexcept;

 private:
  struct Job {
    WorkPtr work;
    Body body;
  };
  // Also the threads own it: the last reference to a queue may go in a callback.
  struct State {
    std::mutex mutex;  // guards what follows
    std::condition_variable news;
    std::deque<Job> jobs;
    bool busy = false, ends = false;
    int waiting = 0, telling = 0;  // threads that have nothing to do; that run callbacks
    std::exception_ptr closed;
    std::vector<std::thread> threads;
  };
  using Lock = std::unique_lock<std::mutex>;

  static void serve(const std::shared_ptr<State>& state);
  static void perform(const std::shared_ptr<State>& state, Lock& lock, Job job);
  static void callForHelp(const std::shared_ptr<State>& state);
  static void addThread(const std::shared_ptr<State>& state);
  static bool isLeftToOthers(State& state, Lock& lock);

  std::shared_ptr<State> state_;
};

}  // namespace tutti_torch
