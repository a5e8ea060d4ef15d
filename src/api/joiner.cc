#include "api/joiner.h"

#include "process/background_threads.h"

namespace tutti::api {
namespace {

// A join under way. A process that ends meanwhile ends it.
class Joiner : public Service {
 public:
  Joiner(tuttiComm_t comm, Join join) : comm_(comm), join_(std::move(join)) {}
  void run() override {
    std::shared_ptr<comm::Communicator> made;
    try {
      made = join_([this] { return comm_->cancelled.load(std::memory_order_relaxed); });
    } catch (const Error& error) {
      return failHandle(comm_, error);
    } catch (const std::exception& error) {
      return failHandle(comm_, errorOrOutOfMemory([&] { return Error(ErrorCode::kSystem, error.what()); }));
    }
    completeHandle(comm_, std::move(made));
  }
  void hurry() override { comm_->cancelled.store(true, std::memory_order_relaxed); }
  void halt() override { hurry(); }

 private:
  const tuttiComm_t comm_;
  const Join join_;
};

}  // namespace

tuttiComm_t joinInBackground(int rank, int size, Join join) {
  const tuttiComm_t comm = makePendingHandle(rank, size);
  comm->nonBlocking = true;
  try {
    BackgroundThreads::instance().start(std::make_shared<Joiner>(comm, std::move(join)));
  } catch (const std::exception&) {
    dropPending(comm);
    throw;
  }
  return comm;
}

}  // namespace tutti::api
