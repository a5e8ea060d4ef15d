// When each call of a record ran.
#pragma once
#include <cstdint>
#include <vector>

#include "doctor/records.h"

namespace tutti::doctor {

struct Span {
  const Call* call;
  int64_t beginNs, endNs;  // since 1970, by the clock of the rank's host; a call that is not over ends with the record
  int64_t lengthNs() const noexcept { return endNs - beginNs; }
};

// In the order of the calls. A call begins when it is made and the one before it on its line is over.
std::vector<Span> spansOf(const Record& record);

}  // namespace tutti::doctor
