// One operation as its caller sees it: c10d::Work with a future of its outputs.
#pragma once
#include <ATen/core/ivalue.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "tally.h"
#include "work_about.h"

namespace tutti_torch {

class OperationWork : public c10d::Work {
 public:
  // `tally` hears how long is waited for it.
  OperationWork(int rank, About about, std::shared_ptr<Tally> tally);

  // Tells those who wait how it has ended; with no error, well. Called once.
  void end(const std::exception_ptr& error = nullptr) noexcept;
  // Of a receive from any rank.
  void cameFrom(int rank) { source_ = rank; }

  const About& about() const { return about_; }

  bool wait(milliseconds timeout = kNoTimeout) override;
  Tensors result() override;
  int sourceRank() const override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return about_.sequence; }
  void synchronize() override;

 private:
  bool ends(std::unique_lock<std::mutex>& lock, milliseconds timeout);
  void endSpan();
  void letGo();

  About about_;
  const std::shared_ptr<Tally> tally_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::atomic<int> source_{-1};
};

// Several works as one: what endCoalescing returns.
class WorkGroup : public c10d::Work {
 public:
  WorkGroup(int rank, std::vector<c10::intrusive_ptr<OperationWork>> works);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  bool wait(milliseconds timeout = kNoTimeout) override;
  Tensors result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  void synchronize() override;

 private:
  std::vector<c10::intrusive_ptr<OperationWork>> works_;
};

}  // namespace tutti_torch
