// The C++ face of tutti.h: owners, exceptions, spans. Header only; needs C++20 and nothing but the standard library.
//
// Everything that tutti.h says about buffers, streams, order, threads and arithmetic holds. An error becomes a
// tutti::Exception with the result code and the library's text. Counts come from the spans: a call whose spans do not
// fit each other throws tuttiInvalidArgument before anything is sent. Where send and receive buffer have different
// sizes, the smaller one decides and the larger must hold its multiple.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tutti/basics.hpp"
#include "tutti/tutti.h"

namespace tutti {
inline namespace face0 {  // its number is the major version: two of them can live in one program

// An in-order queue with a thread of its own; waits for its work when it is destroyed. A null Stream (`Stream::none()`,
// or leaving the argument away) runs an operation in the calling thread.
class Stream {
 public:
  Stream() { detail::check(tuttiStreamCreate(&stream_, 0)); }
  static Stream none() noexcept { return Stream(nullptr); }
  ~Stream() { reset(); }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    if (this != &other) reset(), stream_ = std::exchange(other.stream_, nullptr);
    return *this;
  }

  void synchronize() {
    if (stream_ != nullptr) detail::check(tuttiStreamSynchronize(stream_));
  }
  // Whether the queue is empty.
  bool idle() const {
    const tuttiResult_t result = stream_ == nullptr ? tuttiSuccess : tuttiStreamQuery(stream_);
    if (result != tuttiInProgress) detail::check(result);
    return result == tuttiSuccess;
  }
  tuttiStream_t native() const noexcept { return stream_; }

 private:
  explicit Stream(tuttiStream_t stream) noexcept : stream_(stream) {}
  void reset() noexcept {
    if (stream_ != nullptr) tuttiStreamDestroy(stream_);
  }
  tuttiStream_t stream_ = nullptr;
};

// Memory that peers on the same host can map, or of a GPU: see tuttiMemAllocDevice. Freed with the object.
class Memory {
 public:
  explicit Memory(size_t bytes, int device = -1) : bytes_(bytes) {
    detail::check(tuttiMemAllocDevice(&data_, bytes, device, 0));
  }
  ~Memory() { reset(); }
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    if (this == &other) return *this;
    reset();
    data_ = std::exchange(other.data_, nullptr), bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  void* data() const noexcept { return data_; }
  size_t size() const noexcept { return bytes_; }
  // As many elements as there is room for.
  template <typename T>
  std::span<T> as() const noexcept {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  void reset() noexcept {
    if (data_ != nullptr) tuttiMemFree(data_);
  }
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

class Request;

// What one call is to have that others have not, as the last argument of an operation: see tuttiCallConfig_t. It can
// be given to several calls. `algorithm` is read during the call.
//
//   tutti::Request done;
//   comm.allReduce(data, tuttiSum, stream, tutti::CallConfig().into(done));
//   done.wait();
class CallConfig {
 public:
  CallConfig& algorithm(const char* name) noexcept { return config_.algorithm = name, *this; }
  CallConfig& channels(int count) noexcept { return config_.channels = count, *this; }
  CallConfig& reproducible(bool wanted = true) noexcept { return config_.reproducible = wanted, *this; }
  CallConfig& tag(uint64_t value) noexcept { return config_.tag = value, *this; }
  // What does not fit into the field is cut to what does.
  CallConfig& timeout(std::chrono::milliseconds time) noexcept {
    constexpr std::chrono::milliseconds kMost(std::numeric_limits<int>::max());
    return config_.timeoutMs = static_cast<int>(std::clamp(time, -kMost, kMost).count()), *this;
  }
  // The request gets the operation, of several calls the last one's. What it had before is freed. It has to live until
  // the last call has returned.
  CallConfig& into(Request& request);
  // The call is not run but made ready, for Request::start().
  CallConfig& persistentInto(Request& request);
  // For one call, which writes to the request: what that has is freed.
  const tuttiCallConfig_t* native() const noexcept;

 private:
  tuttiCallConfig_t config_ = TUTTI_CALL_CONFIG_INITIALIZER;
  Request* request_ = nullptr;
};

// One operation, or a call that was made ready; freed with the object, also while it runs. It stays where it is: the
// call writes to it.
class Request {
 public:
  Request() = default;
  ~Request() { reset(); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Whether the operation has ended. Throws its error.
  bool done() const {
    const tuttiResult_t result = tuttiRequestTest(request_);
    if (result != tuttiInProgress) detail::check(result);
    return result == tuttiSuccess;
  }
  void wait() const { detail::check(tuttiRequestWait(request_)); }
  void start() { detail::check(tuttiRequestStart(request_)); }
  explicit operator bool() const noexcept { return request_ != nullptr; }
  tuttiRequest_t native() const noexcept { return request_; }
  void reset() noexcept {
    if (request_ != nullptr) tuttiRequestFree(std::exchange(request_, nullptr));
  }

 private:
  friend class CallConfig;
  tuttiRequest_t request_ = nullptr;
};

inline CallConfig& CallConfig::into(Request& request) {
  request.reset();
  request_ = &request;
  config_.request = &request.request_;
  config_.flags = 0;
  return *this;
}

inline CallConfig& CallConfig::persistentInto(Request& request) {
  into(request).config_.flags = TUTTI_CALL_PERSISTENT;
  return *this;
}

inline const tuttiCallConfig_t* CallConfig::native() const noexcept {
  if (request_ != nullptr) request_->reset();
  return &config_;
}

// A buffer that a communicator knows of (Communicator::registerBuffer), until the object goes: before its communicator.
class [[nodiscard]] Registration {
 public:
  Registration(tuttiComm_t comm, void* handle) noexcept : comm_(comm), handle_(handle) {}
  ~Registration() {
    if (handle_ != nullptr) tuttiCommDeregister(comm_, handle_);
  }
  Registration(Registration&& other) noexcept : comm_(other.comm_), handle_(std::exchange(other.handle_, nullptr)) {}
  Registration& operator=(Registration&&) = delete;

 private:
  tuttiComm_t comm_;
  void* handle_;
};

// An operator of one communicator (Communicator::preMulSum), until the object goes: before its communicator. Give it to
// a reduction as any other.
class [[nodiscard]] Operator {
 public:
  Operator(tuttiComm_t comm, tuttiRedOp_t op) noexcept : comm_(comm), op_(op) {}
  ~Operator() {
    if (comm_ != nullptr) tuttiRedOpDestroy(op_, comm_);
  }
  Operator(Operator&& other) noexcept
      : comm_(std::exchange(other.comm_, nullptr)), op_(std::exchange(other.op_, tuttiMaxRedOp)) {}
  Operator& operator=(Operator&&) = delete;
  operator tuttiRedOp_t() const noexcept { return op_; }

 private:
  tuttiComm_t comm_;
  tuttiRedOp_t op_;
};

// Calls between its construction and end() go out together; communicators are made together, and used after it. end()
// reports their errors; a guard that leaves its scope without it (an exception on the way) ends the group too and
// swallows them.
class [[nodiscard]] Group {
 public:
  Group() { detail::check(tuttiGroupStart()); }
  ~Group() {
    if (open_) tuttiGroupEnd();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end() {
    open_ = false;
    detail::checkBegun(tuttiGroupEnd());
  }

 private:
  bool open_ = true;
};

// One rank's handle, destroyed with the object; aborted where it is still being made, or another is made of it.
// Move-only. One thread at a time, as in C. Data types with no C++ element type of their own (16-bit and 8-bit floats)
// go through the overloads that take bytes and a tuttiDataType_t.
class Communicator {
 public:
  static Communicator join(int ranks, const UniqueId& id, int rank) {
    tuttiComm_t comm = nullptr;
    detail::check(tuttiCommInitRank(&comm, ranks, id.native(), rank));
    return Communicator(comm);
  }
  // With config.nonBlocking it comes back while it joins: until asyncError() is not tuttiInProgress any more.
  static Communicator join(int ranks, const UniqueId& id, int rank, const tuttiConfig_t& config) {
    tuttiComm_t comm = nullptr;
    detail::checkBegun(tuttiCommInitRankConfig(&comm, ranks, id.native(), rank, &config));
    return Communicator(comm);
  }
  // As one of those who join a communicator that grows.
  static Communicator joinGrowing(int ranks, const UniqueId& id, int rank, const tuttiConfig_t* config = nullptr) {
    tuttiComm_t comm = nullptr;
    detail::checkBegun(tuttiCommGrow(nullptr, ranks, &id.native(), rank, &comm, config));
    return Communicator(comm);
  }
  // As what the launcher's environment says.
  static Communicator fromEnvironment(const tuttiConfig_t* config = nullptr) {
    tuttiComm_t comm = nullptr;
    detail::checkBegun(tuttiCommInitEnv(&comm, config));
    return Communicator(comm);
  }
  // All ranks in this process: one communicator each. `devices`: null, or an entry a rank.
  static std::vector<Communicator> joinAll(int ranks, const int* devices = nullptr,
                                           const tuttiConfig_t* config = nullptr) {
    std::vector<tuttiComm_t> handles(ranks > 0 ? static_cast<size_t>(ranks) : 1);  // never NULL: the call refuses
    detail::checkBegun(tuttiCommInitAllConfig(handles.data(), ranks, devices, config));
    std::vector<Communicator> all;
    all.reserve(handles.size());
    for (tuttiComm_t handle : handles) all.push_back(Communicator(handle));
    return all;
  }
  // Takes over a handle that was made in C; null is a communicator without one.
  explicit Communicator(tuttiComm_t owned) noexcept : comm_(owned) {
    if (comm_ != nullptr && isMade()) rank(), size();
  }

  ~Communicator() { reset(); }
  Communicator(Communicator&& other) noexcept : rank_(other.rank_), size_(other.size_) { comm_ = other.release(); }
  Communicator& operator=(Communicator&& other) noexcept {
    if (this == &other) return *this;
    reset();
    rank_ = other.rank_, size_ = other.size_, comm_ = other.release();
    return *this;
  }

  tuttiComm_t native() const noexcept { return comm_; }
  // Gives the handle up: the caller destroys it.
  tuttiComm_t release() noexcept {
    rank_ = -1, size_ = 0;
    return std::exchange(comm_, nullptr);
  }

  explicit operator bool() const noexcept { return comm_ != nullptr; }
  // -1 and 0 while it joins, or until its group ends; and without a handle.
  int rank() const noexcept {
    if (rank_ < 0 && comm_ != nullptr) tuttiCommUserRank(comm_, &rank_);
    return rank_;
  }
  int size() const noexcept {
    if (size_ == 0 && comm_ != nullptr) tuttiCommCount(comm_, &size_);
    return size_;
  }
  tuttiCommStats_t stats() const {
    tuttiCommStats_t stats{};
    stats.size = sizeof stats;
    check(tuttiCommGetStats(comm_, &stats));
    return stats;
  }
  // How long calls of this rank have waited for each other one: tuttiCommGetWaits.
  std::vector<std::chrono::nanoseconds> waits() const {
    std::vector<uint64_t> counts(static_cast<size_t>(size()));
    check(tuttiCommGetWaits(comm_, counts.data(), size()));
    std::vector<std::chrono::nanoseconds> all;
    for (const uint64_t count : counts) all.emplace_back(static_cast<int64_t>(count));
    return all;
  }
  // tuttiSuccess, tuttiInProgress (it is joining or finalizing), or the error that stopped the communicator.
  tuttiResult_t asyncError() const {
    tuttiResult_t result = tuttiSuccess;
    check(tuttiCommGetAsyncError(comm_, &result));
    return result;
  }
  // Whether nothing is queued or running. Any thread.
  bool idle() const {
    int idle = 0;
    check(tuttiCommIdle(comm_, &idle));
    return idle != 0;
  }

  // A Communicator without a handle for the ranks that said TUTTI_SPLIT_NOCOLOR. While it goes on in the background
  // (nonBlocking), or until the group ends, neither is used.
  Communicator split(int color, int key, const tuttiConfig_t* config = nullptr) {
    tuttiComm_t child = nullptr;
    checkBegun(tuttiCommSplit(comm_, color, key, &child, config));
    return Communicator(child);
  }
  // Of the ranks of this one's host.
  Communicator splitByHost(int key = 0, const tuttiConfig_t* config = nullptr) {
    return split(TUTTI_SPLIT_HOST, key, config);
  }
  // Of all ranks once more, with links of its own.
  Communicator duplicate(const tuttiConfig_t* config = nullptr) {
    tuttiComm_t child = nullptr;
    checkBegun(tuttiCommDuplicate(comm_, &child, config));
    return Communicator(child);
  }
  // The survivors' way on after tuttiRemoteError: see tuttiCommShrink.
  Communicator shrink(const tuttiConfig_t* config = nullptr) { return shrink(std::span<const int>(), config); }
  // Without these ranks though they may be alive: they do not call it.
  Communicator shrink(std::span<const int> leftOut, const tuttiConfig_t* config = nullptr) {
    tuttiComm_t child = nullptr;
    checkBegun(tuttiCommShrink(comm_, leftOut.data(), static_cast<int>(leftOut.size()), &child, config, 0));
    return Communicator(child);
  }
  // Of these ranks and others, `ranks` in all: see tuttiCommGrow. One rank brings the id, which it has of
  // uniqueIdToGrow().
  Communicator grow(int ranks, const UniqueId* id = nullptr, const tuttiConfig_t* config = nullptr) {
    tuttiComm_t child = nullptr;
    checkBegun(tuttiCommGrow(comm_, ranks, id != nullptr ? &id->native() : nullptr, -1, &child, config));
    return Communicator(child);
  }
  UniqueId uniqueIdToGrow() const { return UniqueId::createFor(comm_); }
  // Stops the work on all ranks; nobody is gone. Any thread.
  void revoke() { check(tuttiCommRevoke(comm_, 0)); }
  // Writes this rank's record for tutti-doctor. Any thread.
  void dump(const std::string& path) const { check(tuttiCommDump(comm_, path.c_str())); }
  // Where it was made with config.nonBlocking it comes back while work is queued: until asyncError() is not
  // tuttiInProgress any more.
  void finalize() {
    const tuttiResult_t result = tuttiCommFinalize(comm_);
    if (result != tuttiInProgress) check(result);
  }
  // Ends in good order like the destructor, but says when that failed. What still joins, or another is made of, throws
  // tuttiInvalidUsage and stays.
  void destroy() {
    const tuttiResult_t result = tuttiCommDestroy(comm_);
    if (result != tuttiInvalidUsage) release();
    detail::check(result);
  }
  void abort() { detail::check(tuttiCommAbort(release())); }

  // See tuttiCommRegister.
  Registration registerBuffer(void* buffer, size_t bytes) {
    void* handle = nullptr;
    check(tuttiCommRegister(comm_, buffer, bytes, &handle, 0));
    return {comm_, handle};
  }
  // Multiplies this rank's input by `factor`, then adds. For elements of the factor's type.
  template <typename T>
  Operator preMulSum(T factor) {
    tuttiRedOp_t op{};
    check(tuttiRedOpCreatePreMulSum(&op, &factor, kDataTypeOf<T>, tuttiScalarHostImmediate, comm_));
    return {comm_, op};
  }

  // ---- Collectives on spans. From spans the element type is deduced; with a container, name it: allReduce<float>(v,
  // w). ----

  template <typename T>
  void allReduce(std::span<const std::type_identity_t<T>> in, std::span<T> out, tuttiRedOp_t op = tuttiSum,
                 const Stream& on = Stream::none(), const CallConfig& config = {}) {
    require(in.size() == out.size(), "allReduce", "the spans have different sizes");
    check(tuttiAllReduceConfig(in.data(), out.data(), in.size(), kDataTypeOf<T>, op, comm_, on.native(),
                               config.native()));
  }
  // In place.
  template <typename T>
  void allReduce(std::span<T> data, tuttiRedOp_t op = tuttiSum, const Stream& on = Stream::none(),
                 const CallConfig& config = {}) {
    check(tuttiAllReduceConfig(data.data(), data.data(), data.size(), kDataTypeOf<T>, op, comm_, on.native(),
                               config.native()));
  }
  // In place: the root's data arrives in everyone's.
  template <typename T>
  void broadcast(std::span<T> data, int root, const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiBroadcastConfig(data.data(), data.data(), data.size(), kDataTypeOf<T>, root, comm_, on.native(),
                               config.native()));
  }
  // `out` counts on the root only; elsewhere it may be empty.
  template <typename T>
  void reduce(std::span<const std::type_identity_t<T>> in, std::span<T> out, tuttiRedOp_t op, int root,
              const Stream& on = Stream::none(), const CallConfig& config = {}) {
    require(self() != root || in.size() == out.size(), "reduce", "the spans have different sizes");
    check(tuttiReduceConfig(in.data(), out.data(), in.size(), kDataTypeOf<T>, op, root, comm_, on.native(),
                            config.native()));
  }
  template <typename T>
  void allGather(std::span<const std::type_identity_t<T>> in, std::span<T> out, const Stream& on = Stream::none(),
                 const CallConfig& config = {}) {
    require(out.size() == in.size() * ranks(), "allGather", "the output must hold one input a rank");
    check(tuttiAllGatherConfig(in.data(), out.data(), in.size(), kDataTypeOf<T>, comm_, on.native(), config.native()));
  }
  template <typename T>
  void reduceScatter(std::span<const std::type_identity_t<T>> in, std::span<T> out, tuttiRedOp_t op = tuttiSum,
                     const Stream& on = Stream::none(), const CallConfig& config = {}) {
    require(in.size() == out.size() * ranks(), "reduceScatter", "the input must hold one output a rank");
    check(tuttiReduceScatterConfig(in.data(), out.data(), out.size(), kDataTypeOf<T>, op, comm_, on.native(),
                                   config.native()));
  }
  // `out` counts on the root only.
  template <typename T>
  void gather(std::span<const std::type_identity_t<T>> in, std::span<T> out, int root,
              const Stream& on = Stream::none(), const CallConfig& config = {}) {
    require(self() != root || out.size() == in.size() * ranks(), "gather", "the output must hold one input a rank");
    check(
        tuttiGatherConfig(in.data(), out.data(), in.size(), kDataTypeOf<T>, root, comm_, on.native(), config.native()));
  }
  // `in` counts on the root only.
  template <typename T>
  void scatter(std::span<const std::type_identity_t<T>> in, std::span<T> out, int root,
               const Stream& on = Stream::none(), const CallConfig& config = {}) {
    require(self() != root || in.size() == out.size() * ranks(), "scatter", "the input must hold one output a rank");
    check(tuttiScatterConfig(in.data(), out.data(), out.size(), kDataTypeOf<T>, root, comm_, on.native(),
                             config.native()));
  }
  template <typename T>
  void allToAll(std::span<const std::type_identity_t<T>> in, std::span<T> out, const Stream& on = Stream::none(),
                const CallConfig& config = {}) {
    require(in.size() == out.size() && in.size() % ranks() == 0, "allToAll", "both spans must hold one part a rank");
    check(tuttiAllToAllConfig(in.data(), out.data(), in.size() / ranks(), kDataTypeOf<T>, comm_, on.native(),
                              config.native()));
  }
  // In place.
  template <typename T>
  void allToAll(std::span<T> data, const Stream& on = Stream::none(), const CallConfig& config = {}) {
    require(data.size() % ranks() == 0, "allToAll", "the span must hold one part a rank");
    check(tuttiAllToAllConfig(data.data(), data.data(), data.size() / ranks(), kDataTypeOf<T>, comm_, on.native(),
                              config.native()));
  }
  // The v-variants: `counts` has an entry a rank, and so have the places (in elements) of their parts in a buffer.
  template <typename T>
  void allGatherV(std::span<const std::type_identity_t<T>> in, std::span<T> out, std::span<const size_t> counts,
                  std::span<const size_t> places, const Stream& on = Stream::none(), const CallConfig& config = {}) {
    requireParts("allGatherV", out.size(), counts, places);
    require(in.size() == counts[static_cast<size_t>(self())], "allGatherV", "the input must hold this rank's count");
    check(tuttiAllGatherVConfig(in.data(), out.data(), counts.data(), places.data(), kDataTypeOf<T>, comm_, on.native(),
                                config.native()));
  }
  template <typename T>
  void reduceScatterV(std::span<const std::type_identity_t<T>> in, std::span<T> out, std::span<const size_t> counts,
                      tuttiRedOp_t op = tuttiSum, const Stream& on = Stream::none(), const CallConfig& config = {}) {
    require(counts.size() == ranks(), "reduceScatterV", "the counts must have an entry a rank");
    size_t left = in.size();
    for (const size_t count : counts) {
      require(count <= left, "reduceScatterV", "the input must hold the parts of all ranks");
      left -= count;
    }
    require(left == 0 && out.size() == counts[static_cast<size_t>(self())], "reduceScatterV",
            "the spans do not fit the counts");
    check(tuttiReduceScatterVConfig(in.data(), out.data(), counts.data(), kDataTypeOf<T>, op, comm_, on.native(),
                                    config.native()));
  }
  template <typename T>
  void allToAllV(std::span<const std::type_identity_t<T>> in, std::span<const size_t> inCounts,
                 std::span<const size_t> inPlaces, std::span<T> out, std::span<const size_t> outCounts,
                 std::span<const size_t> outPlaces, const Stream& on = Stream::none(), const CallConfig& config = {}) {
    requireParts("allToAllV", in.size(), inCounts, inPlaces);
    requireParts("allToAllV", out.size(), outCounts, outPlaces);
    check(tuttiAllToAllVConfig(in.data(), inCounts.data(), inPlaces.data(), out.data(), outCounts.data(),
                               outPlaces.data(), kDataTypeOf<T>, comm_, on.native(), config.native()));
  }
  // `out`, `counts` and `places` count on the root only; elsewhere they may be empty.
  template <typename T>
  void gatherV(std::span<const std::type_identity_t<T>> in, std::span<T> out, std::span<const size_t> counts,
               std::span<const size_t> places, int root, const Stream& on = Stream::none(),
               const CallConfig& config = {}) {
    if (self() == root) requireParts("gatherV", out.size(), counts, places);
    check(tuttiGatherVConfig(in.data(), in.size(), out.data(), counts.data(), places.data(), kDataTypeOf<T>, root,
                             comm_, on.native(), config.native()));
  }
  // `in`, `counts` and `places` count on the root only.
  template <typename T>
  void scatterV(std::span<const std::type_identity_t<T>> in, std::span<const size_t> counts,
                std::span<const size_t> places, std::span<T> out, int root, const Stream& on = Stream::none(),
                const CallConfig& config = {}) {
    if (self() == root) requireParts("scatterV", in.size(), counts, places);
    check(tuttiScatterVConfig(in.data(), counts.data(), places.data(), out.data(), out.size(), kDataTypeOf<T>, root,
                              comm_, on.native(), config.native()));
  }
  template <typename T>
  void send(std::span<const T> data, int peer, const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiSendConfig(data.data(), data.size(), kDataTypeOf<T>, peer, comm_, on.native(), config.native()));
  }
  template <typename T>
  void receive(std::span<T> data, int peer, const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiRecvConfig(data.data(), data.size(), kDataTypeOf<T>, peer, comm_, on.native(), config.native()));
  }
  void barrier(const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiBarrierConfig(comm_, on.native(), config.native()));
  }

  // ---- With the data type named: for elements that C++ has no type for. `count` elements, as in C. ----

  void allReduce(const void* in, void* out, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                 const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiAllReduceConfig(in, out, count, type, op, comm_, on.native(), config.native()));
  }
  void broadcast(const void* in, void* out, size_t count, tuttiDataType_t type, int root,
                 const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiBroadcastConfig(in, out, count, type, root, comm_, on.native(), config.native()));
  }
  void reduce(const void* in, void* out, size_t count, tuttiDataType_t type, tuttiRedOp_t op, int root,
              const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiReduceConfig(in, out, count, type, op, root, comm_, on.native(), config.native()));
  }
  void allGather(const void* in, void* out, size_t count, tuttiDataType_t type, const Stream& on = Stream::none(),
                 const CallConfig& config = {}) {
    check(tuttiAllGatherConfig(in, out, count, type, comm_, on.native(), config.native()));
  }
  void reduceScatter(const void* in, void* out, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                     const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiReduceScatterConfig(in, out, count, type, op, comm_, on.native(), config.native()));
  }
  void gather(const void* in, void* out, size_t count, tuttiDataType_t type, int root,
              const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiGatherConfig(in, out, count, type, root, comm_, on.native(), config.native()));
  }
  void scatter(const void* in, void* out, size_t count, tuttiDataType_t type, int root,
               const Stream& on = Stream::none(), const CallConfig& config = {}) {
    check(tuttiScatterConfig(in, out, count, type, root, comm_, on.native(), config.native()));
  }
  void allToAll(const void* in, void* out, size_t count, tuttiDataType_t type, const Stream& on = Stream::none(),
                const CallConfig& config = {}) {
    check(tuttiAllToAllConfig(in, out, count, type, comm_, on.native(), config.native()));
  }
  void send(const void* data, size_t count, tuttiDataType_t type, int peer, const Stream& on = Stream::none(),
            const CallConfig& config = {}) {
    check(tuttiSendConfig(data, count, type, peer, comm_, on.native(), config.native()));
  }
  void receive(void* data, size_t count, tuttiDataType_t type, int peer, const Stream& on = Stream::none(),
               const CallConfig& config = {}) {
    check(tuttiRecvConfig(data, count, type, peer, comm_, on.native(), config.native()));
  }

 private:
  void reset() noexcept {
    if (comm_ != nullptr && tuttiCommDestroy(comm_) == tuttiInvalidUsage) tuttiCommAbort(comm_);
  }
  // What spans are held against: of one that is null, or joins still, the library's error.
  size_t ranks() const {
    if (size_ == 0) check(tuttiCommCount(comm_, &size_));
    return static_cast<size_t>(size_);
  }
  int self() const {
    if (rank_ < 0) check(tuttiCommUserRank(comm_, &rank_));
    return rank_;
  }
  bool isMade() const noexcept {
    tuttiResult_t now = tuttiSuccess;
    return tuttiCommGetAsyncError(comm_, &now) == tuttiSuccess && now == tuttiSuccess;
  }
  void requireParts(const char* call, size_t room, std::span<const size_t> counts,
                    std::span<const size_t> places) const {
    require(counts.size() == ranks() && places.size() == ranks(), call, "counts and places must have an entry a rank");
    for (size_t r = 0; r < counts.size(); ++r)
      require(counts[r] == 0 || (places[r] <= room && counts[r] <= room - places[r]), call,
              "a part reaches beyond its span");
  }
  // The communicator's own text when there is one, else the thread's.
  void check(tuttiResult_t result) const { detail::check(result, comm_); }
  void checkBegun(tuttiResult_t result) const {
    if (result != tuttiInProgress) check(result);
  }
  static void require(bool fits, const char* call, const char* complaint) {
    if (!fits) throw Exception(tuttiInvalidArgument, std::string(call) + ": " + complaint);
  }
  tuttiComm_t comm_ = nullptr;
  mutable int rank_ = -1, size_ = 0;  // of one that joins not known yet
};

}  // namespace face0
}  // namespace tutti
