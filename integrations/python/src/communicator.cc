#include "communicator.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string_view>
#include <vector>

#include "../../common/bus.h"
#include "errors.h"

namespace nb = nanobind;

namespace tutti::python {
namespace {

// Of the calling thread: what an open group has collected, and has to wait for.
thread_local int groupDepth = 0;
thread_local uint64_t groupNumber = 0;  // of all that any thread has opened
thread_local std::vector<std::shared_ptr<Operation>>* collected = nullptr;

// The value of a setting as this type has it; `wanted` says to a person what that is.
template <class T>
T valueOf(nb::handle given, const std::string& name, const char* wanted) {
  T value{};
  if (!nb::try_cast(given, value))
    raise(tuttiInvalidArgument, name + " is " + nb::cast<std::string>(nb::repr(given)) + ": it is " + wanted);
  return value;
}

bool switchOf(nb::handle given, const std::string& name) { return valueOf<bool>(given, name, "True or False"); }

double secondsOf(nb::handle given, const std::string& name) { return valueOf<double>(given, name, "a number"); }

int millisecondsOf(nb::handle seconds, const char* name) {
  const double value = secondsOf(seconds, name) * 1000;
  if (!(value >= 1 && value <= 1e9))
    raise(tuttiInvalidArgument, std::string(name) + " is " + nb::cast<std::string>(nb::str(seconds)) +
                                    ": it is in seconds, from 0.001 to 1,000,000");
  return static_cast<int>(std::lround(value));
}

int heartbeatOf(nb::handle seconds) {
  return secondsOf(seconds, "heartbeat") == 0 ? -1 : millisecondsOf(seconds, "heartbeat");
}

// Only the main thread has signals to look after; others wait inside the library, which is quicker.
bool isMainThread() { return ::syscall(SYS_gettid) == ::getpid(); }

bool isFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

tuttiResult_t stateOf(tuttiComm_t comm) {
  tuttiResult_t state = tuttiSuccess;
  const tuttiResult_t failed = tuttiCommGetAsyncError(comm, &state);
  return failed != tuttiSuccess ? failed : state;
}

// What is collected begins at the end of the group.
void refuseInGroup(const char* what) {
  if (groupDepth > 0)
    raise(tuttiInvalidUsage,
          std::string(what) + " cannot be waited for inside of tutti.group(): do it outside of the block");
}

void awaitMaking(tuttiComm_t comm) {
  tuttiResult_t state = tuttiInProgress;
  try {
    waitUntil([&] { return (state = stateOf(comm)) != tuttiInProgress; });
  } catch (nb::python_error&) {
    tuttiCommAbort(comm);
    throw;
  }
  if (state == tuttiSuccess) return;
  const std::string text = textOf(state, comm);
  tuttiCommAbort(comm);
  raise(state, text);
}

tuttiCallConfig_t configOf(const CallWish& wish, tuttiRequest_t* request) {
  tuttiCallConfig_t config = TUTTI_CALL_CONFIG_INITIALIZER;
  config.channels = wish.channels;
  config.algorithm = wish.algorithm ? wish.algorithm->c_str() : nullptr;
  config.reproducible = wish.reproducible;
  config.tag = wish.tag;
  config.request = request;
  return config;
}

}  // namespace

Settings::Settings(const nb::kwargs& given) {
  config_.nonBlocking = 1;  // so that a wait for the other ranks can be interrupted
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (value.is_none()) continue;
    if (name == "join_timeout")
      config_.joinTimeoutMs = millisecondsOf(value, "join_timeout");
    else if (name == "connect_timeout")
      config_.connectTimeoutMs = millisecondsOf(value, "connect_timeout");
    else if (name == "operation_timeout")
      config_.operationTimeoutMs = millisecondsOf(value, "operation_timeout");
    else if (name == "heartbeat")
      config_.heartbeatMs = heartbeatOf(value);
    else if (name == "channels" && nb::isinstance<nb::str>(value))
      setText(&config_.channelRules, channelRules_, value, name);
    else if (name == "channels")
      config_.channels = valueOf<int>(value, name, "a whole number, or text as of TUTTI_CHANNELS");
    else if (name == "encrypt")
      config_.encrypt = switchOf(value, name);
    else if (name == "reproducible")
      config_.reproducible = switchOf(value, name);
    else if (name == "transports")
      setText(&config_.transports, transports_, value, name);
    else if (name == "algorithm")
      setText(&config_.algorithm, algorithm_, value, name);
    else if (name == "protocol")
      setText(&config_.protocol, protocol_, value, name);
    else if (name == "name")
      setText(&config_.name, name_, value, name);
    else
      throw nb::type_error(("unknown setting '" + name + "' of a communicator").c_str());
  }
}

void Settings::setText(const char** field, std::string& home, nb::handle value, const std::string& name) {
  home = valueOf<std::string>(value, name, "text");
  *field = home.c_str();
}

std::unique_ptr<Communicator> Communicator::adopt(tuttiComm_t made, tuttiComm_t parent) {
  if (made != nullptr && groupDepth > 0) tuttiCommAbort(made);
  refuseInGroup("a communicator that is made");
  if (made != nullptr) {
    awaitMaking(made);
    return std::unique_ptr<Communicator>(new Communicator(made));
  }
  waitUntil([&] { return stateOf(parent) != tuttiInProgress; });
  check(stateOf(parent), parent);
  return nullptr;
}

Communicator::Communicator(tuttiComm_t comm) : comm_(comm) {
  check(tuttiCommUserRank(comm_, &rank_), comm_);
  check(tuttiCommCount(comm_, &size_), comm_);
}

// Of one that nobody has destroyed: what is under way is waited for, as by destroy(), but without a look at signals;
// and not where the interpreter ends, perhaps for an exception, so that nobody could end the wait.
Communicator::~Communicator() {
  const bool abandoned = isFinalizing() && !std::ranges::all_of(underWay_, [](const auto& one) { return one->poll(); });
  const nb::gil_scoped_release released;
  if (abandoned && comm_ != nullptr) tuttiCommAbort(std::exchange(comm_, nullptr));
  if (stream_ != nullptr) tuttiStreamDestroy(stream_);
  if (comm_ != nullptr && tuttiCommDestroy(comm_) == tuttiInvalidUsage) tuttiCommAbort(comm_);
}

tuttiComm_t Communicator::native() const {
  if (comm_ == nullptr) raise(tuttiInvalidUsage, "this communicator has been destroyed or aborted: make another one");
  return comm_;
}

tuttiStream_t Communicator::stream() {
  if (stream_ == nullptr) check(tuttiStreamCreate(&stream_, 0));
  return stream_;
}

void Communicator::reap() {
  while (!underWay_.empty() && underWay_.front()->ended()) underWay_.pop_front();
}

nb::object Communicator::run(const char* name, const CallWish& wish, std::initializer_list<const Array*> arrays,
                             size_t bytes,
                             const std::function<tuttiResult_t(tuttiStream_t, const tuttiCallConfig_t*)>& call) {
  const tuttiComm_t comm = native();
  reap();
  auto operation = std::make_shared<Operation>(groupDepth > 0 ? groupNumber : 0);
  const bool inPlace = !wish.async && groupDepth == 0 && !isMainThread();  // in the calling thread
  const tuttiStream_t on = inPlace ? nullptr : stream();
  const tuttiCallConfig_t config = configOf(wish, operation->place());
  const auto begin = std::chrono::steady_clock::now();
  tuttiResult_t result = tuttiSuccess;
  std::string text;
  {
    const nb::gil_scoped_release released;
    result = call(on, &config);
    if (result != tuttiSuccess) text = textOf(result, comm);
  }
  if (result != tuttiSuccess) raise(result, text);
  Count& count = counts_[name];
  ++count.operations, count.bytes += bytes;
  if (inPlace) {
    count.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return nb::none();
  }
  for (const Array* array : arrays) operation->keep(array->keeper);
  underWay_.push_back(operation);
  return finish(operation, count, wish);
}

nb::object Communicator::finish(const std::shared_ptr<Operation>& operation, Count& count, const CallWish& wish) {
  if (wish.async) return nb::cast(operation);
  if (groupDepth > 0) {
    collected->push_back(operation);
    return nb::none();
  }
  const auto begin = std::chrono::steady_clock::now();
  operation->wait(std::nullopt);
  count.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return nb::none();
}

void Communicator::destroy() {
  if (comm_ == nullptr) return;
  refuseInGroup("a communicator");
  waitUntil([this] {
    for (const auto& operation : underWay_)
      if (!operation->poll()) return false;
    return true;
  });
  reap();
  const tuttiComm_t comm = std::exchange(comm_, nullptr);  // who asks from another thread meanwhile finds none
  const tuttiStream_t stream = std::exchange(stream_, nullptr);
  tuttiResult_t result = tuttiSuccess;
  std::string text;
  {
    const nb::gil_scoped_release released;
    if (stream != nullptr) tuttiStreamDestroy(stream);
    result = tuttiCommDestroy(comm);
    if (result != tuttiSuccess) text = textOf(result, comm);
  }
  if (result == tuttiInvalidUsage) comm_ = comm;
  if (result != tuttiSuccess) raise(result, text);
}

void Communicator::abort() {
  if (comm_ == nullptr) return;
  const tuttiComm_t comm = std::exchange(comm_, nullptr);
  tuttiResult_t result = tuttiSuccess;
  {
    const nb::gil_scoped_release released;
    result = tuttiCommAbort(comm);
  }
  check(result);
}

tuttiResult_t Communicator::asyncError() const { return stateOf(native()); }

nb::dict Communicator::stats() const {
  tuttiCommStats_t now = {};
  now.size = sizeof now;
  check(tuttiCommGetStats(native(), &now), comm_);
  nb::dict all;
  const auto set = [&all](const std::string& key, auto value) { all[key.c_str()] = static_cast<double>(value); };
  set("rank", rank_), set("size", size_);
  set("library_operations", now.operations), set("seconds", static_cast<double>(now.nanoseconds) * 1e-9);
  set("memory_bytes", now.memoryBytes), set("connected_peers", now.connectedPeers);
  Count sum;
  double busBytes = 0;
  for (const auto& [name, count] : counts_) {
    set(name + "_operations", count.operations), set(name + "_bytes", count.bytes);
    set(name + "_wait_seconds", count.seconds);
    sum.operations += count.operations, sum.bytes += count.bytes, sum.seconds += count.seconds;
    busBytes += static_cast<double>(count.bytes) * integrations::busFactor(name, size_);
  }
  set("operations", sum.operations), set("bytes", sum.bytes), set("wait_seconds", sum.seconds);
  set("bus_bytes", busBytes);
  set("bus_bandwidth", now.nanoseconds == 0 ? 0 : busBytes * 1e9 / static_cast<double>(now.nanoseconds));
  addWaits(all);
  return all;
}

void Communicator::addWaits(nb::dict& all) const {
  std::vector<uint64_t> waits(static_cast<size_t>(size_));
  check(tuttiCommGetWaits(native(), waits.data(), size_), comm_);
  for (int rank = 0; rank < size_; ++rank)
    if (const uint64_t waited = waits[static_cast<size_t>(rank)]; waited > 0)
      all[("wait_for_rank_" + std::to_string(rank) + "_seconds").c_str()] = static_cast<double>(waited) * 1e-9;
}

void startGroup() {
  check(tuttiGroupStart());
  if (groupDepth++ > 0) return;
  static std::atomic<uint64_t> groups{0};
  groupNumber = ++groups;
  collected = new std::vector<std::shared_ptr<Operation>>;
}

bool isCollecting(uint64_t group) noexcept { return groupDepth > 0 && group == groupNumber; }

// A call that the library refuses makes it refuse the group.
void abandonGroup() {
  tuttiRequestStart(nullptr);
  try {
    endGroup();
  } catch (const nb::python_error&) {
  }
}

void endGroup() {
  tuttiResult_t result = tuttiSuccess;
  std::string text;
  {
    const nb::gil_scoped_release released;
    result = tuttiGroupEnd();
    if (result != tuttiSuccess) text = textOf(result);
  }
  if (groupDepth == 0 || --groupDepth > 0) {
    if (result != tuttiSuccess) raise(result, text);
    return;
  }
  const std::unique_ptr<std::vector<std::shared_ptr<Operation>>> all(std::exchange(collected, nullptr));
  if (result != tuttiSuccess) raise(result, text);
  for (const auto& operation : *all) operation->wait(std::nullopt);
}

}  // namespace tutti::python
