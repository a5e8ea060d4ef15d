#include "api/join_all.h"

#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "join/open_root.h"
#include "process/settings_warnings.h"
#include "process/thread.h"

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
      if (devices) setDevice(config, devices[r]);
      attempt(
          [&] { threads_.push_back(startThread([this, id, r, config] { attempt([&] { join(id, r, config); }); })); });
    }
  }
  std::vector<std::shared_ptr<comm::Communicator>> finish() {
    for (auto& thread : threads_) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(made_);
  }

 private:
  // An argument of the call, which TUTTI_DEVICE has no say in: neither here nor in what is made of this rank later.
  static void setDevice(comm::Config& config, int device) {
    config.device = device;
    config.variables.erase("TUTTI_DEVICE");
  }
  void join(const control::UniqueId& id, size_t rank, const comm::Config& config) {
    const auto self = comm::Self::find(config);
    self.check();  // before the others hear of it: this is the failure to tell
    made_[rank] = comm::Communicator::join(id, static_cast<int>(rank), static_cast<int>(made_.size()), config, self,
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
  settings::warnOfStrangeSettings();
  settings::tellForeignNames();
  const auto id = control::openRootHere(Network::fromEnvironment(), Deadline::in(config.joinTimeout));
  JoinOfAll all(ranks);
  all.start(id, config, devices);
  return all.finish();
}

}  // namespace tutti::api
