#include "work.h"

#include <algorithm>
#include <utility>

#include "errors.h"
#include "gil.h"
#include "turn.h"

namespace tutti_torch {
namespace {

using std::chrono::duration_cast;
using std::chrono::steady_clock;

c10::intrusive_ptr<c10::ivalue::Future> newFuture() {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

}  // namespace

OperationWork::OperationWork(int rank, About about, std::shared_ptr<Tally> tally)
    : Work(rank, about.type, about.title, about.inputs),
      about_(std::move(about)),
      tally_(std::move(tally)),
      future_(newFuture()) {}

// The profiler's span first: who has waited may stop the profiler, and with it go what spans are written to. Then the
// future: who has waited for the work finds it done.
void OperationWork::end(const std::exception_ptr& error) noexcept {
  endSpan();
  error ? future_->setError(error) : future_->markCompleted(c10::IValue(about_.outputs));
  finish(error);
  letGo();
}

void OperationWork::endSpan() {
  const std::lock_guard lock(mutex_);
  if (const auto span = std::exchange(recordFunctionEndCallback_, nullptr)) span();
}

// Inputs are free again for who kept them only for this.
void OperationWork::letGo() {
  Tensors inputs;  // the last of one may be Python's, which wants its lock: not under the mutex
  const std::lock_guard lock(mutex_);
  inputs.swap(about_.inputs);
}

bool OperationWork::ends(std::unique_lock<std::mutex>& lock, milliseconds timeout) {
  const auto done = [this] { return completed_; };
  if (timeout != kNoTimeout) return cv_.wait_for(lock, std::min(timeout, kLongest), done);
  cv_.wait(lock, done);
  return true;
}

// PyTorch calls it with Python's lock held.
void OperationWork::synchronize() {
  const WithoutGil released;
  wait();
}

bool OperationWork::wait(milliseconds timeout) {
  const auto since = steady_clock::now();
  if (!isCompleted()) Turn::passOn();
  std::unique_lock lock(mutex_);
  const bool ended = ends(lock, timeout);
  tally_->waited(about_.type, since);
  if (!ended)
    tutti_torch::fail(c10::str("Operation timed out! ", about_.title, " #", about_.sequence,
                               " has not ended within the ", timeout.count(), " ms of wait(); it goes on until the ",
                               about_.timeout.count(), " ms of its own have passed, or the group is aborted"));
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

Tensors OperationWork::result() {
  TORCH_CHECK(isCompleted(), "tutti: result() of a work that has not ended: wait() for it first");
  return about_.outputs;
}

int OperationWork::sourceRank() const {
  const int source = source_;
  TORCH_CHECK(source >= 0, "tutti: sourceRank() may only be called on works of recvAnysource that have ended");
  return source;
}

WorkGroup::WorkGroup(int rank, std::vector<c10::intrusive_ptr<OperationWork>> works)
    : Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

bool WorkGroup::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isCompleted(); });
}

bool WorkGroup::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isSuccess(); });
}

std::exception_ptr WorkGroup::exception() const {
  for (const auto& work : works_)
    if (const auto error = work->exception()) return error;
  return nullptr;
}

void WorkGroup::synchronize() {
  const WithoutGil released;
  wait();
}

bool WorkGroup::wait(milliseconds timeout) {
  const auto limit = steady_clock::now() + std::min(timeout, kLongest);
  for (const auto& work : works_) {
    const auto left = duration_cast<milliseconds>(limit - steady_clock::now());
    work->wait(timeout == kNoTimeout ? kNoTimeout : std::max(left, milliseconds(1)));
  }
  return true;
}

Tensors WorkGroup::result() {
  Tensors all;
  for (const auto& work : works_)
    for (const auto& tensor : work->result()) all.push_back(tensor);
  return all;
}

c10::intrusive_ptr<c10::ivalue::Future> WorkGroup::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
      c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
  for (const auto& work : works_) futures.push_back(work->getFuture());
  const auto all = c10::collectAll(futures);
  return all->then(
      [works = works_](c10::ivalue::Future& ended) -> c10::IValue {
        if (ended.hasError()) std::rethrow_exception(ended.exception_ptr());
        Tensors outputs;
        for (const auto& work : works)
          for (const auto& tensor : work->about().outputs) outputs.push_back(tensor);
        return outputs;
      },
      c10::ListType::create(c10::TensorType::get()));
}

}  // namespace tutti_torch
