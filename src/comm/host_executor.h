// Runs calls on host memory: those without a stream on the calling thread, those of each stream on its thread.
#pragma once
#include <map>

#include "comm/host_state.h"
#include "comm/task.h"
#include "team/executor.h"
#include "window/lasting_memory.h"

namespace tutti::comm {

class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(Team& team);
  HostState& state() noexcept { return state_; }

  void run(const Call& call) override;
  Again again(const Call& call) noexcept override;
  void goOn(const Call& call) override;
  void queue(PendingCall call) override;
  void addBuffer(const void* handle, const Range& buffer) override;
  void endBuffer(const void* handle) override { buffers_.erase(handle); }
  void endBuffers() noexcept override { buffers_.clear(); }
  void end() noexcept override { buffers_.clear(); }
  bool idle() const noexcept override { return state_.idle(); }
  Stats stats() const override;
  std::string foresee(const Call& call) const override;
  Explanation explain(const Call& call) const override;
  Rows describe() const override;

 private:
  HostState state_;
  BegunCall begun_;                               // of again(), for goOn()
  std::map<const void*, window::Lasts> buffers_;  // by their handles
};

}  // namespace tutti::comm
