// Threads of the library's own: what one throws ends that one alone, and all have ended when the process does.
#include "process/background_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "base/error.h"

namespace tutti {
namespace {

class Waiter : public Service {
 public:
  void run() override { told_.get_future().wait(); }
  void hurry() override {
    if (!hurried_.exchange(true)) told_.set_value();
  }
  void halt() override { hurry(); }

 private:
  std::promise<void> told_;
  std::atomic<bool> hurried_{false};
};

class Thrower : public Service {
 public:
  explicit Thrower(std::promise<void>& gone) : gone_(gone) {}
  ~Thrower() override { gone_.set_value(); }
  void run() override { throw std::runtime_error("no more room"); }
  void hurry() override {}
  void halt() override {}

 private:
  std::promise<void>& gone_;
};

TEST(BackgroundThreads, WhatAThreadThrowsEndsThatThreadAlone) {
  BackgroundThreads threads;
  std::promise<void> gone;
  const auto waiter = std::make_shared<Waiter>();
  threads.start(waiter);
  threads.start(std::make_shared<Thrower>(gone));
  gone.get_future().wait();
  EXPECT_EQ(waiter.use_count(), 2);  // it runs
  threads.finish();
  EXPECT_EQ(waiter.use_count(), 1);
}

TEST(BackgroundThreads, StartsNothingAfterTheEnd) {
  BackgroundThreads threads;
  threads.finish();
  EXPECT_THROW(threads.start(std::make_shared<Waiter>()), Error);
  threads.finish();
}

}  // namespace
}  // namespace tutti
