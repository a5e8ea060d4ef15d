#include "join/used_jobs.h"

#include <algorithm>

#include "process/process_object.h"

namespace tutti::control {
namespace {

constexpr size_t kRemembered = 1024;

}  // namespace

UsedJobs& UsedJobs::instance() { return ofThisProcess<UsedJobs>(); }

void UsedJobs::note(uint64_t job) {
  std::lock_guard lock(mutex_);
  jobs_.push_back(job);
  if (jobs_.size() > kRemembered) jobs_.pop_front();
}

bool UsedJobs::contains(uint64_t job) {
  std::lock_guard lock(mutex_);
  return std::ranges::find(jobs_, job) != jobs_.end();
}

}  // namespace tutti::control
