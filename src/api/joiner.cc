#include "api/joiner.h"

#include <fmt/format.h>

#include <list>
#include <system_error>
#include <thread>

#include "base/fork.h"

namespace tutti::api {
namespace {

void run(tuttiComm_t comm, const Join& join) noexcept {
  std::shared_ptr<comm::Communicator> made;
  try {
    made = join([comm] { return comm->cancelled.load(std::memory_order_relaxed); });
  } catch (const Error& error) {
    return failHandle(comm, error);
  } catch (const std::exception& error) {
    return failHandle(comm, Error(ErrorCode::kSystem, error.what()));
  }
  completeHandle(comm, std::move(made));
}

// The threads that join. A process that ends meanwhile stops them first.
class Joiners {
 public:
  static Joiners& instance() {
    static Joiners joiners;
    return joiners;
  }
  void start(tuttiComm_t comm, Join join) {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](Entry& entry) {
      if (!entry.done.load(std::memory_order_acquire)) return false;
      entry.thread.join();
      return true;
    });
    Entry& entry = entries_.emplace_back();
    entry.comm = comm;
    try {
      entry.thread = std::thread([&entry, join = std::move(join)] {
        run(entry.comm, join);
        // Release: pairs with the look above; the thread touches nothing any more.
        entry.done.store(true, std::memory_order_release);
      });
    } catch (const std::system_error& e) {
      entries_.pop_back();
      throw Error(ErrorCode::kSystem, fmt::format("cannot start a thread to join with: {}", e.what()));
    }
  }

 private:
  struct Entry {
    tuttiComm_t comm = nullptr;
    std::atomic<bool> done{false};
    std::thread thread;
  };
  Joiners() {
    // What the threads use must outlive them, so it is made first.
    comm::Communicator::prepareProcess();
  }
  ~Joiners() {
    if (generation_ != fork::generation()) {  // a forked child has none of these threads
      new std::list<Entry>(std::move(entries_));
      return;
    }
    for (Entry& entry : entries_) entry.comm->cancelled.store(true, std::memory_order_relaxed);
    for (Entry& entry : entries_) entry.thread.join();
  }

  const uint32_t generation_ = fork::generation();
  std::mutex mutex_;
  std::list<Entry> entries_;
};

}  // namespace

tuttiComm_t joinInBackground(int rank, int size, Join join) {
  const tuttiComm_t comm = makePendingHandle(rank, size);
  Joiners::instance().start(comm, std::move(join));
  return comm;
}

}  // namespace tutti::api
