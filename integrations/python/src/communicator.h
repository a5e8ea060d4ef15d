// A communicator as Python holds it: the library's handle, a stream for what runs in the background, what is under way.
#pragma once
#include <nanobind/nanobind.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "array.h"
#include "operation.h"
#include "tutti/tutti.h"

namespace tutti::python {

// The keyword arguments of what makes communicators (tutti/_core.pyi lists them) as the library's struct.
class Settings {
 public:
  explicit Settings(const nanobind::kwargs& given);
  Settings(const Settings&) = delete;
  const tuttiConfig_t* native() const noexcept { return &config_; }

 private:
  void setText(const char** field, std::string& home, nanobind::handle value, const std::string& name);
  tuttiConfig_t config_ = TUTTI_CONFIG_INITIALIZER;
  std::string transports_, algorithm_, channelRules_, protocol_, name_;
};

// What Communicator.stats() counts beside the library.
struct Count {
  uint64_t operations = 0, bytes = 0;
  double seconds = 0;  // that the program has waited
};

// The keyword arguments of an operation that only change how it runs.
struct CallWish {
  bool async = false, reproducible = false;
  int channels = 0;
  std::optional<std::string> algorithm;
  uint64_t tag = 0;
};

class Communicator {
 public:
  // Waits, interruptibly, until the handle is made; raises its error. `parent` is watched where there is no handle.
  static std::unique_ptr<Communicator> adopt(tuttiComm_t made, tuttiComm_t parent = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool isOpen() const noexcept { return comm_ != nullptr; }
  // Raises tutti.InvalidUsage once it has been destroyed or aborted.
  tuttiComm_t native() const;

  // Runs `call` (which calls a function of the library with this stream and configuration) on the arrays: to its end,
  // or as a request. In a group None comes back, and the group waits, unless a request is asked for.
  nanobind::object run(const char* name, const CallWish& wish, std::initializer_list<const Array*> arrays, size_t bytes,
                       const std::function<tuttiResult_t(tuttiStream_t, const tuttiCallConfig_t*)>& call);

  void destroy();
  void abort();
  // Any thread that holds the GIL, also while calls run.
  nanobind::dict stats() const;
  tuttiResult_t asyncError() const;

 private:
  Communicator(tuttiComm_t comm);
  tuttiStream_t stream();
  void reap();
  void addWaits(nanobind::dict& all) const;
  nanobind::object finish(const std::shared_ptr<Operation>& operation, Count& count, const CallWish& wish);

  tuttiComm_t comm_ = nullptr;
  tuttiStream_t stream_ = nullptr;
  int rank_ = -1, size_ = 0;
  std::deque<std::shared_ptr<Operation>> underWay_;
  std::map<std::string, Count> counts_;
};

// Calls between the two go out together.
void startGroup();
// Waits for those that are no requests; raises the first error.
void endGroup();
// Ends it without what was collected.
void abandonGroup();
// Whether the calling thread is inside of this group.
bool isCollecting(uint64_t group) noexcept;

}  // namespace tutti::python
