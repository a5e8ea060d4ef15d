// Runs operations one after the other, in the order in which they were given, on threads of its own.
//
// Those who wait for an operation are told in that order too, which may run callbacks of futures; and a callback may
// begin operations of its own and wait for them (the PowerSGD hook of DDP does). So while callbacks run, operations go
// on, on another thread. The callbacks of the next operation begin when these have returned, or have begun an operation
// or wait for one: thus all ranks' callbacks begin theirs in one order. What waits for something else, and longer than
// anybody computes, may wait for the callbacks behind it: then they begin, with a warning.
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
  void submit(WorkPtr work, Body body);
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
  struct Ended {
    WorkPtr work;
    std::exception_ptr error;
  };
  // Also the threads own it: the last reference to a queue may go in a callback.
  struct State {
    std::mutex mutex;  // guards what follows
    std::condition_variable news;
    std::deque<Job> jobs;
    std::deque<Ended> ended;               // nobody has been told yet
    bool busy = false;                     // an operation runs
    uint64_t turn = 0, turns = 0;          // whose callbacks are under way, so that the next wait; 0: nobody's
    int waiting = 0;                       // threads that have nothing to do
    std::vector<std::thread::id> tellers;  // threads that run callbacks
    bool ends = false;
    std::exception_ptr closed;
    std::vector<std::thread> threads;
    bool canRun() const { return !busy && !jobs.empty(); }
    bool canTell() const { return turn == 0 && !ended.empty(); }
    bool isDone() const { return jobs.empty() && ended.empty() && !busy; }
  };
  using StatePtr = std::shared_ptr<State>;
  using Lock = std::unique_lock<std::mutex>;
  static void serve(const StatePtr& state);
  static void awaitNews(State& state, Lock& lock);
  static std::exception_ptr run(State& state, Lock& lock, Job& job);
  static void runHere(const StatePtr& state, Lock& lock, Job job);
  static void tellNext(const StatePtr& state, Lock& lock);
  static void callForHelp(const StatePtr& state);
  static void addThread(const StatePtr& state);

  StatePtr state_;
};

}  // namespace tutti_torch
