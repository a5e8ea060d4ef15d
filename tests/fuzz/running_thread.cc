#include <poll.h>

#include <atomic>
#include <thread>

#include "fuzz/running.h"

namespace tutti::fuzz {

class Running::Way {
 public:
  explicit Way(Service& kept) : kept_(kept), thread_([this] { kept_.run(), over_ = true; }) {}
  ~Way() {
    kept_.halt();
    thread_.join();
  }
  bool over() const noexcept { return over_; }

 private:
  Service& kept_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

Running::Running(Service& kept) : way_(std::make_unique<Way>(kept)) {}
Running::~Running() = default;
bool Running::over() const noexcept { return way_->over(); }
void Running::goOn() {}
void Running::rest() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

bool awaitEvents(int fd, short events, Deadline deadline) {
  pollfd one{fd, events, 0};
  return ::poll(&one, 1, static_cast<int>(deadline.left().count())) > 0;
}

Deadline soon() { return Deadline::in(std::chrono::milliseconds(2)); }

}  // namespace tutti::fuzz
