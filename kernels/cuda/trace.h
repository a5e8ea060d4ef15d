// A range in the time line of profilers that read NVTX (domain "tutti"); without one it costs a look at a pointer.
#pragma once

namespace tutti::cuda {

class TraceRange {
 public:
  explicit TraceRange(const char* name) noexcept;
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
};

}  // namespace tutti::cuda
