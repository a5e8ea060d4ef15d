// The file of TUTTI_TRACE: events in Chrome's trace format, which Perfetto (ui.perfetto.dev) reads.
// Its form is "Trace Event Format" as Google publishes it: an array of JSON objects, whose end may be missing. So
// processes of a host may share a file: each appends whole lines.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::comm {

class TraceFile {
 public:
  static TraceFile& instance();

  // The first name that is asked for is this process's file, from then on; %h and %p as in TUTTI_DEBUG_FILE. Where it
  // can not be written, a warning says so, once, and nothing is.
  void open(const std::string& pattern);
  // A row of the picture; its number. Any thread, as all that follows.
  int newTrack(std::string_view name);
  // A slice of a row, in nanoseconds since 1970. Those of a row come one after the other. `name` and `arguments`, the
  // inside of a JSON object, are written as they are. Kept for a while, and then written with others.
  void add(int track, std::string_view name, int64_t beginNs, int64_t endNs, std::string_view arguments) noexcept;
  void flush() noexcept;

 private:
  void describe(int track, std::string_view name);
  void line(const std::string& event);
  void write() noexcept;
  void refuse(int errnoValue) noexcept;

  std::mutex mutex_;  // guards what follows
  std::string path_, kept_;
  int fd_ = -1;
  bool named_ = false;         // the process
  std::vector<int64_t> ends_;  // of the last slice, by track - 1
  int64_t written_ = 0;        // when, in nanoseconds
};

}  // namespace tutti::comm
