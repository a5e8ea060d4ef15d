#include "perf/persistent.h"

namespace tutti::perf {
namespace {

// The tag says in records and error texts which of them it is.
tuttiCallConfig_t persistent(tuttiRequest_t& request, size_t number) {
  tuttiCallConfig_t config = TUTTI_CALL_CONFIG_INITIALIZER;
  config.flags = TUTTI_CALL_PERSISTENT;
  config.request = &request;
  config.tag = number;
  return config;
}

}  // namespace

PersistentCalls::~PersistentCalls() {
  for (const Requests& requests : calls_)
    for (const tuttiRequest_t request : requests)
      if (request != nullptr) tuttiRequestFree(request);
}

tuttiResult_t PersistentCalls::make(const Collective& collective, Call call) {
  Requests& requests = calls_.emplace_back();
  const tuttiCallConfig_t first = persistent(requests[0], calls_.size()),
                          second = persistent(requests[1], calls_.size());
  call.config = &first;
  call.second = &second;
  return collective.run(call);
}

tuttiResult_t PersistentCalls::startOne(tuttiRequest_t request) const {
  const tuttiResult_t ended = queued_ ? tuttiRequestWait(request) : tuttiSuccess;
  return ended == tuttiSuccess ? tuttiRequestStart(request) : ended;
}

tuttiResult_t PersistentCalls::start(size_t number) const {
  const auto& [first, second] = calls_[number % calls_.size()];
  if (second == nullptr) return startOne(first);
  tuttiResult_t result = tuttiGroupStart();
  if (result != tuttiSuccess) return result;
  result = startOne(first);
  if (result == tuttiSuccess) result = startOne(second);
  const tuttiResult_t end = tuttiGroupEnd();
  return result == tuttiSuccess ? end : result;
}

}  // namespace tutti::perf
