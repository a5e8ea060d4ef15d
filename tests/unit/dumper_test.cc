// The writer of records looks at communicators that others end meanwhile.
#include "diagnose/dumper.h"
#include "join/open_root.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "support/patience.h"

namespace tutti::comm {
namespace {

// Of one rank; its records, if there were any, would lie where tests write.
std::shared_ptr<Communicator> lone() {
  Config config = Config::fromEnvironment();
  config.dumpDirectory = ::testing::TempDir();
  const Self self = Self::find(config);
  const auto id = control::openRoot(self.network, Deadline::in(test::longWait()));
  return Communicator::join(id, 0, 1, config, self);
}

// Stands for a communicator, by its executor: `ended` is called by whoever lets go of it last.
template <class Ended>
std::shared_ptr<Executor> standIn(const std::shared_ptr<Communicator>& real, Ended ended) {
  return std::shared_ptr<Executor>(&real->executor(), [real, ended](Executor*) { ended(); });
}

// What becomes of a communicator that ends on the writer's thread, while another thread turns to the writer.
struct End {
  std::thread::id here = std::this_thread::get_id();
  std::thread other;
  std::atomic<bool> came{false}, answered{false}, over{false};

  void operator()(const std::shared_ptr<Communicator>& real) {
    if (std::this_thread::get_id() == here || came.exchange(true)) return;
    other = std::thread([this, real] {
      Dumper::instance().add({real, &real->executor()});
      answered = true;
    });
    const Deadline deadline = Deadline::in(test::longWait());
    while (!answered && !deadline.passed()) std::this_thread::yield();
    EXPECT_TRUE(answered) << "the writer keeps others out while a communicator ends";
    over = true;
  }
};

// The end of a communicator takes its time, and may wait for other threads: none of them may wait for the writer. A
// writer that holds each only while it looks at it, under its lock, is seldom the last here, and fails in the end too.
TEST(Dumper, KeepsNobodyOutWhileItEndsWhatItHeldLast) {
  const auto real = lone();
  Dumper& dumper = Dumper::instance();
  // So many that a look at them lasts.
  std::vector<std::shared_ptr<Executor>> others(4096);
  for (auto& other : others) dumper.add(other = standIn(real, [] {}));
  const auto end = std::make_shared<End>();  // the writer may hold one when this test is over
  const Deadline deadline = Deadline::in(3 * test::longWait());
  while (!end->came && !deadline.passed()) {
    auto one = standIn(real, [real, end] { (*end)(real); });
    dumper.add(one);
    while (one.use_count() == 1 && !deadline.passed()) {
    }
    one.reset();  // the writer has it in its hands now, and most often for longer
    std::this_thread::yield();
  }
  ASSERT_TRUE(end->came) << "the writer was never the last to hold one";
  while (!end->over) std::this_thread::yield();
  end->other.join();
}

}  // namespace
}  // namespace tutti::comm
