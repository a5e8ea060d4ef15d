// Operations that are queued on a GPU, as their caller sees them: c10d::Work over an event of the stream where they
// are.
//
// wait() makes the caller's current stream wait for them, and returns; with a timeout, and after a barrier, it waits on
// the host. The communicator tells that they have failed, soon after they have.
#pragma once
#include <c10/core/Event.h>

#include <memory>
#include <optional>

#include "communicator.h"
#include "work.h"

namespace tutti_torch {

class GpuWork : public c10d::Work {
 public:
  GpuWork(int rank, About about, c10::Device device);

  // Before it is queued: it has these tensors, too.
  void add(const About& more);
  // It is what that stream was given last.
  void queued(const c10::Stream& stream, const std::shared_ptr<Communicator>& comm);
  // Once it is queued: tells those who wait for the future, which may run their callbacks.
  void tell();

  const About& about() const { return about_; }

  bool isCompleted() override { return hasEnded(); }
  bool isSuccess() const override { return hasEnded() && !error_; }
  std::exception_ptr exception() const override;
  bool wait(milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  Tensors result() override { return about_.outputs; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return about_.sequence; }

 private:
  std::exception_ptr failed() const;
  bool hasEnded() const;
  void waitOnHost(milliseconds timeout) const;

  About about_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  c10::Device device_;
  std::optional<c10::Stream> stream_;
  std::optional<c10::Event> event_;
  std::weak_ptr<Communicator> comm_;  // whoever keeps a work does not keep the group
  mutable bool ended_ = false;        // under Work's mutex, as what follows
  mutable std::exception_ptr error_;
};

using GpuWorkPtr = c10::intrusive_ptr<GpuWork>;

}  // namespace tutti_torch
