#include "api/join_all.h"

#include <atomic>
#include <exception>
#include <thread>
#include <utility>

namespace tutti::api {
namespace {

// Ranks that are threads must not wait for one another in turn: each joins on a thread of its own. The first that fails
// stops the others, who would wait for it until their deadline.
class JoinOfAll {
 public:
  explicit JoinOfAll(int ranks) : made_(static_cast<size_t>(ranks)) {}

  void start(const control::UniqueId& id, comm::Config config, const int* devices) {
    threads_.reserve(made_.size());
    for (size_t r = 0; r < made_.size() && !failed_.load(std::memory_order_relaxed); ++r) {
      if (devices) config.device = devices[r];
      attempt([&] { threads_.emplace_back([this, id, r, config] { attempt([&] { join(id, r, config); }); }); });
    }
  }
  std::vector<std::shared_ptr<comm::Communicator>> finish() {
    for (auto& thread : threads_) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(made_);
  }

 private:
  void join(const control::UniqueId& id, size_t rank, const comm::Config& config) {
    made_[rank] = comm::Communicator::join(id, static_cast<int>(rank), static_cast<int>(made_.size()), config,
                                           [this] { return failed_.load(std::memory_order_relaxed); });
  }
  // Keeps the first failure. Who wrote it is joined before it is read.
  template <class Body>
  void attempt(Body&& body) noexcept {
    try {
      std::forward<Body>(body)();
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
    }
  }

  std::vector<std::shared_ptr<comm::Communicator>> made_;
  std::vector<std::thread> threads_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace

std::vector<std::shared_ptr<comm::Communicator>> joinAll(int ranks, const int* devices) {
  const comm::Config config = comm::Config::fromEnvironment();
  const auto id = control::openRoot(control::Network::fromEnvironment(), Deadline::in(config.joinTimeout));
  JoinOfAll all(ranks);
  all.start(id, config, devices);
  return all.finish();
}

}  // namespace tutti::api
