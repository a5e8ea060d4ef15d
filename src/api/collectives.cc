// The collectives: check the arguments, say them as a Call, submit.
#include <fmt/format.h>

#include <cstdint>

#include "api/check.h"
#include "api/configuration.h"
#include "api/guard.h"
#include "api/submit.h"
#include "api/tables.h"

using namespace tutti;
using namespace tutti::api;

namespace {

const std::byte* bytes(const void* p) { return static_cast<const std::byte*>(p); }
std::byte* bytes(void* p) { return static_cast<std::byte*>(p); }

// What every operation is given; nothing of it has been checked.
struct Given {
  const void* send;
  void* recv;
  size_t count;
  tuttiDataType_t type;
};

// How it is to run.
struct How {
  tuttiStream_t stream;
  const tuttiCallConfig_t* config;
  bool entered = false;  // the caller is inside of the communicator already
};

bool isPlain(const Asked& asked, tuttiStream_t stream) { return asked.op < kFirstMadeOp && stream == nullptr; }

// The frame of every operation: enter the communicator, let `fill` check and complete the call, submit it. `asked`:
// what tells a plain call from others, null: it is none; `entered`: the caller is inside already.
template <class Fill>
[[gnu::always_inline]] inline tuttiResult_t operation(const char* name, Collective collective, const Given& given,
                                                      tuttiComm_t comm, const How& how, const Asked* asked,
                                                      Fill&& fill) noexcept {
  if (how.config != nullptr) clearRequest(*how.config);
  return guarded(
      comm, [&]() __attribute__((always_inline)) {
        spoiling([&]() __attribute__((always_inline)) {
          CallGuard visit = how.entered ? CallGuard(comm, CallGuard::kEntered) : CallGuard(comm, name);
          comm::Call call;
          call.collective = collective;
          call.type = checkType(given.type, name);
          call.send = bytes(given.send);
          call.recv = bytes(given.recv);
          call.count = given.count;
          fill(call, comm->size);
          if (how.config != nullptr)
            return submitConfigured(visit, std::move(call), how.stream, comm, name, *how.config);
          if (asked != nullptr) return submitPlain(visit, std::move(call), *asked, comm, name);
          submit(visit, std::move(call), how.stream, comm, name);
        });
      });
}

template <class Fill>
[[gnu::always_inline]] inline tuttiResult_t operation(const char* name, Collective collective, const Given& given,
                                                      tuttiComm_t comm, const How& how, Fill&& fill) noexcept {
  return operation(name, collective, given, comm, how, nullptr, std::forward<Fill>(fill));
}

// Of an operation without tables, whose plain calls may be made again.
template <class Fill>
[[gnu::always_inline]] inline tuttiResult_t operation(const char* name, const Asked& asked, tuttiComm_t comm,
                                                      const How& how, Fill&& fill) noexcept {
  const Given given{asked.send, asked.recv, asked.count, asked.type};
  const bool plain = how.config == nullptr && isPlain(asked, how.stream);
  return operation(name, asked.collective, given, comm, how, plain ? &asked : nullptr, std::forward<Fill>(fill));
}

// Of an operator that every communicator has; of others -1.
int builtInRow(int number) {
  if (number >= 0 && number < tuttiNumOps) return number;
  return number >= tuttiBitAnd && number <= tuttiBitXor ? number - tuttiBitAnd + static_cast<int>(ReduceOp::kBitAnd)
                                                        : -1;
}

void setOperator(comm::Call& call, tuttiRedOp_t op, tuttiComm_t comm, const char* name) {
  const int number = static_cast<int>(op);
  if (const int row = builtInRow(number); row >= 0) {
    call.op = static_cast<ReduceOp>(row);
    if (!isDefined(call.op, call.type)) refuseUndefined(call.op, call.type, name);
    return;
  }
  const size_t index = number < kFirstMadeOp ? SIZE_MAX : static_cast<size_t>(number - kFirstMadeOp);
  if (index >= comm->operators.size() || !comm->operators[index].alive)
    invalid(name, fmt::format("op is {}: neither a built-in operator nor one made on this communicator", number));
  const Operator& made = comm->operators[index];
  if (made.type != call.type)
    invalid(name, fmt::format("op was made for {}, the call is of {}", nameOf(made.type), nameOf(call.type)));
  call.op = ReduceOp::kPreMulSum;
  call.factor = made.factor;
  call.factorAt = made.factorAt;
}

// Of this rank's part between itself and itself.
void checkOwnPart(size_t sent, size_t expected, const char* tables, int rank, const char* name) {
  if (sent != expected)
    invalid(name, fmt::format("{}: rank {} sends itself {} elements but expects {}", tables, rank, sent, expected));
}

// In place each part comes to where the one that goes the other way lay.
void checkInPlace(const comm::Tables& tables, const char* name) {
  for (size_t r = 0; r < tables.inputCounts.size(); ++r) {
    const size_t sent = tables.inputCounts[r], expected = tables.outputCounts[r];
    if (sent == expected && (sent == 0 || tables.inputOffsets[r] == tables.outputOffsets[r])) continue;
    invalid(name, fmt::format("send and recv are the same, but what goes to rank {} ({} elements from {} on) is not "
                              "where what comes from it goes ({} elements from {} on): in place, the tables of both "
                              "sides are equal",
                              r, sent, tables.inputOffsets[r], expected, tables.outputOffsets[r]));
  }
}

// Of a rank that is not the root: its own count stands alone.
std::shared_ptr<const comm::Tables> ownCount(size_t count, int rank, int ranks) {
  auto tables = std::make_shared<comm::Tables>();
  tables->outputCounts.resize(static_cast<size_t>(ranks));
  tables->outputCounts[static_cast<size_t>(rank)] = count;
  return tables;
}

// Each operation once, for its two entries below. Of those whose plain calls may be made again it is what such a call
// comes to that has not been made before: a function of its own, so that the others have a small frame.
[[gnu::noinline]] tuttiResult_t allReduce(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int) {
    setOperator(call, asked.op, comm, name);
    checkBuffer(asked.send, asked.count, name, "send");
    checkBuffer(asked.recv, asked.count, name, "recv");
    const size_t size = checkBytes(asked.count, 1, call.type, name);
    checkOverlap(asked.send, size, asked.recv, size, asked.send == asked.recv, name);
  });
}

[[gnu::noinline]] tuttiResult_t broadcast(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int ranks) {
    call.root = checkRank(asked.root, ranks, name, "root");
    checkBuffer(asked.recv, asked.count, name, "recv");
    const size_t size = checkBytes(asked.count, 1, call.type, name);
    if (comm->rank == asked.root) {
      checkBuffer(asked.send, asked.count, name, "send");
      checkOverlap(asked.send, size, asked.recv, size, asked.send == asked.recv, name);
    }
  });
}

[[gnu::noinline]] tuttiResult_t reduce(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int ranks) {
    setOperator(call, asked.op, comm, name);
    call.root = checkRank(asked.root, ranks, name, "root");
    checkBuffer(asked.send, asked.count, name, "send");
    const size_t size = checkBytes(asked.count, 1, call.type, name);
    if (comm->rank == asked.root) {
      checkBuffer(asked.recv, asked.count, name, "recv");
      checkOverlap(asked.send, size, asked.recv, size, asked.send == asked.recv, name);
    }
  });
}

[[gnu::noinline]] tuttiResult_t allGather(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int ranks) {
    checkBuffer(asked.send, asked.count, name, "send");
    checkBuffer(asked.recv, asked.count, name, "recv");
    const size_t whole = checkBytes(asked.count, static_cast<size_t>(ranks), call.type, name);
    const size_t part = asked.count * sizeOf(call.type);
    checkOverlap(asked.send, part, asked.recv, whole,
                 bytes(asked.send) == bytes(asked.recv) + static_cast<size_t>(comm->rank) * part, name);
  });
}

[[gnu::noinline]] tuttiResult_t reduceScatter(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int ranks) {
    setOperator(call, asked.op, comm, name);
    checkBuffer(asked.send, asked.count, name, "send");
    checkBuffer(asked.recv, asked.count, name, "recv");
    const size_t whole = checkBytes(asked.count, static_cast<size_t>(ranks), call.type, name);
    const size_t part = asked.count * sizeOf(call.type);
    checkOverlap(asked.send, whole, asked.recv, part,
                 bytes(asked.recv) == bytes(asked.send) + static_cast<size_t>(comm->rank) * part, name);
  });
}

[[gnu::noinline]] tuttiResult_t gather(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int ranks) {
    call.root = checkRank(asked.root, ranks, name, "root");
    checkBuffer(asked.send, asked.count, name, "send");
    const size_t whole = checkBytes(asked.count, static_cast<size_t>(ranks), call.type, name);
    const size_t part = asked.count * sizeOf(call.type);
    if (comm->rank == asked.root) {
      checkBuffer(asked.recv, asked.count, name, "recv");
      checkOverlap(asked.send, part, asked.recv, whole,
                   bytes(asked.send) == bytes(asked.recv) + static_cast<size_t>(asked.root) * part, name);
    }
  });
}

[[gnu::noinline]] tuttiResult_t scatter(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int ranks) {
    call.root = checkRank(asked.root, ranks, name, "root");
    checkBuffer(asked.recv, asked.count, name, "recv");
    const size_t whole = checkBytes(asked.count, static_cast<size_t>(ranks), call.type, name);
    const size_t part = asked.count * sizeOf(call.type);
    if (comm->rank == asked.root) {
      checkBuffer(asked.send, asked.count, name, "send");
      checkOverlap(asked.send, whole, asked.recv, part,
                   bytes(asked.recv) == bytes(asked.send) + static_cast<size_t>(asked.root) * part, name);
    }
  });
}

[[gnu::noinline]] tuttiResult_t allToAll(const char* name, const Asked& asked, tuttiComm_t comm, const How& how) {
  return operation(name, asked, comm, how, [&](comm::Call& call, int ranks) {
    checkBuffer(asked.send, asked.count, name, "send");
    checkBuffer(asked.recv, asked.count, name, "recv");
    const size_t whole = checkBytes(asked.count, static_cast<size_t>(ranks), call.type, name);
    checkOverlap(asked.send, whole, asked.recv, whole, asked.send == asked.recv, name);
  });
}

[[gnu::always_inline]] inline tuttiResult_t allGatherV(const char* name, const void* send, void* recv,
                                                       const size_t* recvCounts, const size_t* recvDispls,
                                                       tuttiDataType_t type, tuttiComm_t comm, const How& how) {
  const Given given{send, recv, 0, type};
  return operation(name, Collective::kAllGatherV, given, comm, how, [&](comm::Call& call, int ranks) {
    auto tables = std::make_shared<comm::Tables>();
    tables->outputCounts = copyTable(recvCounts, ranks, name, "recvCounts");
    tables->outputOffsets = copyTable(recvDispls, ranks, name, "recvDispls");
    const auto self = static_cast<size_t>(comm->rank);
    const size_t own = tables->outputCounts[self];
    const size_t whole = extent(tables->outputCounts, tables->outputOffsets, call.type, name, "recv");
    checkApart(tables->outputCounts, tables->outputOffsets, name);
    checkBuffer(send, own, name, "send");
    checkBuffer(recv, whole, name, "recv");
    const size_t recvBytes = checkBytes(whole, 1, call.type, name);
    const std::byte* place = bytes(recv) + tables->outputOffsets[self] * sizeOf(call.type);
    checkOverlap(send, own * sizeOf(call.type), recv, recvBytes, bytes(send) == place, name);
    call.tables = std::move(tables);
  });
}

[[gnu::always_inline]] inline tuttiResult_t reduceScatterV(const char* name, const void* send, void* recv,
                                                           const size_t* recvCounts, tuttiDataType_t type,
                                                           tuttiRedOp_t op, tuttiComm_t comm, const How& how) {
  const Given given{send, recv, 0, type};
  return operation(name, Collective::kReduceScatterV, given, comm, how, [&](comm::Call& call, int ranks) {
    setOperator(call, op, comm, name);
    auto tables = std::make_shared<comm::Tables>();
    tables->outputCounts = copyTable(recvCounts, ranks, name, "recvCounts");
    const size_t whole = sum(tables->outputCounts, name, "recvCounts");
    tables->inputOffsets = offsetsOf(tables->outputCounts);
    const auto self = static_cast<size_t>(comm->rank);
    const size_t own = tables->outputCounts[self];
    checkBuffer(send, whole, name, "send");
    checkBuffer(recv, own, name, "recv");
    const size_t sendBytes = checkBytes(whole, 1, call.type, name);
    const std::byte* place = bytes(send) + tables->inputOffsets[self] * sizeOf(call.type);
    checkOverlap(send, sendBytes, recv, own * sizeOf(call.type), bytes(recv) == place, name);
    call.tables = std::move(tables);
  });
}

[[gnu::always_inline]] inline tuttiResult_t allToAllV(const char* name, const void* send, const size_t* sendCounts,
                                                      const size_t* sendDispls, void* recv, const size_t* recvCounts,
                                                      const size_t* recvDispls, tuttiDataType_t type, tuttiComm_t comm,
                                                      const How& how) {
  const Given given{send, recv, 0, type};
  return operation(name, Collective::kAllToAllV, given, comm, how, [&](comm::Call& call, int ranks) {
    auto tables = std::make_shared<comm::Tables>();
    tables->inputCounts = copyTable(sendCounts, ranks, name, "sendCounts");
    tables->inputOffsets = copyTable(sendDispls, ranks, name, "sendDispls");
    tables->outputCounts = copyTable(recvCounts, ranks, name, "recvCounts");
    tables->outputOffsets = copyTable(recvDispls, ranks, name, "recvDispls");
    const auto self = static_cast<size_t>(comm->rank);
    checkOwnPart(tables->inputCounts[self], tables->outputCounts[self], "sendCounts and recvCounts", comm->rank, name);
    const size_t sendExtent = extent(tables->inputCounts, tables->inputOffsets, call.type, name, "send");
    const size_t recvExtent = extent(tables->outputCounts, tables->outputOffsets, call.type, name, "recv");
    checkApart(tables->outputCounts, tables->outputOffsets, name);
    checkBuffer(send, sendExtent, name, "send");
    checkBuffer(recv, recvExtent, name, "recv");
    const size_t sendBytes = checkBytes(sendExtent, 1, call.type, name);
    const size_t recvBytes = checkBytes(recvExtent, 1, call.type, name);
    if (send == recv && sendBytes != 0 && recvBytes != 0) checkInPlace(*tables, name);
    checkOverlap(send, sendBytes, recv, recvBytes, send == recv, name);
    call.tables = std::move(tables);
  });
}

[[gnu::always_inline]] inline tuttiResult_t gatherV(const char* name, const void* send, size_t sendCount, void* recv,
                                                    const size_t* recvCounts, const size_t* recvDispls,
                                                    tuttiDataType_t type, int root, tuttiComm_t comm, const How& how) {
  const Given given{send, recv, 0, type};
  return operation(name, Collective::kGatherV, given, comm, how, [&](comm::Call& call, int ranks) {
    call.root = checkRank(root, ranks, name, "root");
    checkBuffer(send, sendCount, name, "send");
    const size_t sendBytes = checkBytes(sendCount, 1, call.type, name);
    if (comm->rank != root) {
      call.tables = ownCount(sendCount, comm->rank, ranks);
      return;
    }
    auto tables = std::make_shared<comm::Tables>();
    tables->outputCounts = copyTable(recvCounts, ranks, name, "recvCounts");
    tables->outputOffsets = copyTable(recvDispls, ranks, name, "recvDispls");
    const auto self = static_cast<size_t>(root);
    checkOwnPart(sendCount, tables->outputCounts[self], "sendCount and recvCounts", root, name);
    const size_t whole = extent(tables->outputCounts, tables->outputOffsets, call.type, name, "recv");
    checkApart(tables->outputCounts, tables->outputOffsets, name);
    checkBuffer(recv, whole, name, "recv");
    const size_t recvBytes = checkBytes(whole, 1, call.type, name);
    const std::byte* place = bytes(recv) + tables->outputOffsets[self] * sizeOf(call.type);
    checkOverlap(send, sendBytes, recv, recvBytes, bytes(send) == place, name);
    call.tables = std::move(tables);
  });
}

[[gnu::always_inline]] inline tuttiResult_t scatterV(const char* name, const void* send, const size_t* sendCounts,
                                                     const size_t* sendDispls, void* recv, size_t recvCount,
                                                     tuttiDataType_t type, int root, tuttiComm_t comm, const How& how) {
  const Given given{send, recv, 0, type};
  return operation(name, Collective::kScatterV, given, comm, how, [&](comm::Call& call, int ranks) {
    call.root = checkRank(root, ranks, name, "root");
    checkBuffer(recv, recvCount, name, "recv");
    const size_t recvBytes = checkBytes(recvCount, 1, call.type, name);
    if (comm->rank != root) {
      call.tables = ownCount(recvCount, comm->rank, ranks);
      return;
    }
    auto tables = std::make_shared<comm::Tables>();
    tables->outputCounts = copyTable(sendCounts, ranks, name, "sendCounts");
    tables->inputOffsets = copyTable(sendDispls, ranks, name, "sendDispls");
    const auto self = static_cast<size_t>(root);
    checkOwnPart(tables->outputCounts[self], recvCount, "sendCounts and recvCount", root, name);
    const size_t whole = extent(tables->outputCounts, tables->inputOffsets, call.type, name, "send");
    checkBuffer(send, whole, name, "send");
    const size_t sendBytes = checkBytes(whole, 1, call.type, name);
    const std::byte* place = bytes(send) + tables->inputOffsets[self] * sizeOf(call.type);
    checkOverlap(send, sendBytes, recv, recvBytes, bytes(recv) == place, name);
    call.tables = std::move(tables);
  });
}

[[gnu::always_inline]] inline tuttiResult_t sendTo(const char* name, const void* send, size_t count,
                                                   tuttiDataType_t type, int peer, tuttiComm_t comm, const How& how) {
  const Given given{send, nullptr, count, type};
  return operation(name, Collective::kSendRecv, given, comm, how, [&](comm::Call& call, int ranks) {
    call.root = checkRank(peer, ranks, name, "peer");
    call.sends = true;
    checkBuffer(send, count, name, "send");
    checkBytes(count, 1, call.type, name);
  });
}

[[gnu::always_inline]] inline tuttiResult_t receiveFrom(const char* name, void* recv, size_t count,
                                                        tuttiDataType_t type, int peer, tuttiComm_t comm,
                                                        const How& how) {
  const Given given{nullptr, recv, count, type};
  return operation(name, Collective::kSendRecv, given, comm, how, [&](comm::Call& call, int ranks) {
    call.root = checkRank(peer, ranks, name, "peer");
    checkBuffer(recv, count, name, "recv");
    checkBytes(count, 1, call.type, name);
  });
}

[[gnu::always_inline]] inline tuttiResult_t barrier(const char* name, tuttiComm_t comm, const How& how) {
  const Given given{nullptr, nullptr, 1, tuttiInt8};  // a byte that the task itself brings
  return operation(name, Collective::kBarrier, given, comm, how,
                   [&](comm::Call& call, int) { call.op = ReduceOp::kMax; });
}

// The first thing of an operation whose plain calls may be made again.
[[gnu::always_inline]] inline Before madeBefore(const Asked& asked, tuttiStream_t stream, tuttiComm_t comm) noexcept {
  return isPlain(asked, stream) ? madeAgain(comm, asked) : Before();
}

}  // namespace

extern "C" {

tuttiResult_t tuttiAllReduce(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                             tuttiComm_t comm, tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, op, 0, Collective::kAllReduce};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result()
                       : allReduce("tuttiAllReduce", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiAllReduceConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                                   tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return allReduce("tuttiAllReduceConfig", {send, recv, count, type, op, 0, Collective::kAllReduce}, comm,
                   {stream, config});
}

tuttiResult_t tuttiBroadcast(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                             tuttiComm_t comm, tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, tuttiSum, root, Collective::kBroadcast};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result()
                       : broadcast("tuttiBroadcast", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiBroadcastConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                   tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return broadcast("tuttiBroadcastConfig", {send, recv, count, type, tuttiSum, root, Collective::kBroadcast}, comm,
                   {stream, config});
}

tuttiResult_t tuttiReduce(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiRedOp_t op, int root,
                          tuttiComm_t comm, tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, op, root, Collective::kReduce};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result() : reduce("tuttiReduce", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiReduceConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                                int root, tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return reduce("tuttiReduceConfig", {send, recv, count, type, op, root, Collective::kReduce}, comm, {stream, config});
}

tuttiResult_t tuttiAllGather(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiComm_t comm,
                             tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, tuttiSum, 0, Collective::kAllGather};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result()
                       : allGather("tuttiAllGather", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiAllGatherConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiComm_t comm,
                                   tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return allGather("tuttiAllGatherConfig", {send, recv, count, type, tuttiSum, 0, Collective::kAllGather}, comm,
                   {stream, config});
}

tuttiResult_t tuttiReduceScatter(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                                 tuttiComm_t comm, tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, op, 0, Collective::kReduceScatter};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result()
                       : reduceScatter("tuttiReduceScatter", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiReduceScatterConfig(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                       tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream,
                                       const tuttiCallConfig_t* config) {
  return reduceScatter("tuttiReduceScatterConfig", {send, recv, count, type, op, 0, Collective::kReduceScatter}, comm,
                       {stream, config});
}

tuttiResult_t tuttiGather(const void* send, void* recv, size_t count, tuttiDataType_t type, int root, tuttiComm_t comm,
                          tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, tuttiSum, root, Collective::kGather};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result() : gather("tuttiGather", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiGatherConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return gather("tuttiGatherConfig", {send, recv, count, type, tuttiSum, root, Collective::kGather}, comm,
                {stream, config});
}

tuttiResult_t tuttiScatter(const void* send, void* recv, size_t count, tuttiDataType_t type, int root, tuttiComm_t comm,
                           tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, tuttiSum, root, Collective::kScatter};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result() : scatter("tuttiScatter", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiScatterConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                 tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return scatter("tuttiScatterConfig", {send, recv, count, type, tuttiSum, root, Collective::kScatter}, comm,
                 {stream, config});
}

tuttiResult_t tuttiAllToAll(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiComm_t comm,
                            tuttiStream_t stream) {
  const Asked asked{send, recv, count, type, tuttiSum, 0, Collective::kAllToAll};
  const Before before = madeBefore(asked, stream, comm);
  return before.made() ? before.result() : allToAll("tuttiAllToAll", asked, comm, {stream, nullptr, before.entered()});
}

tuttiResult_t tuttiAllToAllConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiComm_t comm,
                                  tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return allToAll("tuttiAllToAllConfig", {send, recv, count, type, tuttiSum, 0, Collective::kAllToAll}, comm,
                  {stream, config});
}

tuttiResult_t tuttiAllGatherV(const void* send, void* recv, const size_t* recvCounts, const size_t* recvDispls,
                              tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream) {
  return allGatherV("tuttiAllGatherV", send, recv, recvCounts, recvDispls, type, comm, {stream, nullptr});
}

tuttiResult_t tuttiAllGatherVConfig(const void* send, void* recv, const size_t* recvCounts, const size_t* recvDispls,
                                    tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream,
                                    const tuttiCallConfig_t* config) {
  return allGatherV("tuttiAllGatherVConfig", send, recv, recvCounts, recvDispls, type, comm, {stream, config});
}

tuttiResult_t tuttiReduceScatterV(const void* send, void* recv, const size_t* recvCounts, tuttiDataType_t type,
                                  tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream) {
  return reduceScatterV("tuttiReduceScatterV", send, recv, recvCounts, type, op, comm, {stream, nullptr});
}

tuttiResult_t tuttiReduceScatterVConfig(const void* send, void* recv, const size_t* recvCounts, tuttiDataType_t type,
                                        tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream,
                                        const tuttiCallConfig_t* config) {
  return reduceScatterV("tuttiReduceScatterVConfig", send, recv, recvCounts, type, op, comm, {stream, config});
}

tuttiResult_t tuttiAllToAllV(const void* send, const size_t* sendCounts, const size_t* sendDispls, void* recv,
                             const size_t* recvCounts, const size_t* recvDispls, tuttiDataType_t type, tuttiComm_t comm,
                             tuttiStream_t stream) {
  return allToAllV("tuttiAllToAllV", send, sendCounts, sendDispls, recv, recvCounts, recvDispls, type, comm,
                   {stream, nullptr});
}

tuttiResult_t tuttiAllToAllVConfig(const void* send, const size_t* sendCounts, const size_t* sendDispls, void* recv,
                                   const size_t* recvCounts, const size_t* recvDispls, tuttiDataType_t type,
                                   tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return allToAllV("tuttiAllToAllVConfig", send, sendCounts, sendDispls, recv, recvCounts, recvDispls, type, comm,
                   {stream, config});
}

tuttiResult_t tuttiGatherV(const void* send, size_t sendCount, void* recv, const size_t* recvCounts,
                           const size_t* recvDispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                           tuttiStream_t stream) {
  return gatherV("tuttiGatherV", send, sendCount, recv, recvCounts, recvDispls, type, root, comm, {stream, nullptr});
}

tuttiResult_t tuttiGatherVConfig(const void* send, size_t sendCount, void* recv, const size_t* recvCounts,
                                 const size_t* recvDispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                                 tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return gatherV("tuttiGatherVConfig", send, sendCount, recv, recvCounts, recvDispls, type, root, comm,
                 {stream, config});
}

tuttiResult_t tuttiScatterV(const void* send, const size_t* sendCounts, const size_t* sendDispls, void* recv,
                            size_t recvCount, tuttiDataType_t type, int root, tuttiComm_t comm, tuttiStream_t stream) {
  return scatterV("tuttiScatterV", send, sendCounts, sendDispls, recv, recvCount, type, root, comm, {stream, nullptr});
}

tuttiResult_t tuttiScatterVConfig(const void* send, const size_t* sendCounts, const size_t* sendDispls, void* recv,
                                  size_t recvCount, tuttiDataType_t type, int root, tuttiComm_t comm,
                                  tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return scatterV("tuttiScatterVConfig", send, sendCounts, sendDispls, recv, recvCount, type, root, comm,
                  {stream, config});
}

tuttiResult_t tuttiSend(const void* send, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                        tuttiStream_t stream) {
  return sendTo("tuttiSend", send, count, type, peer, comm, {stream, nullptr});
}

tuttiResult_t tuttiSendConfig(const void* send, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                              tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return sendTo("tuttiSendConfig", send, count, type, peer, comm, {stream, config});
}

tuttiResult_t tuttiRecv(void* recv, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                        tuttiStream_t stream) {
  return receiveFrom("tuttiRecv", recv, count, type, peer, comm, {stream, nullptr});
}

tuttiResult_t tuttiRecvConfig(void* recv, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                              tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return receiveFrom("tuttiRecvConfig", recv, count, type, peer, comm, {stream, config});
}

tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream) {
  return barrier("tuttiBarrier", comm, {stream, nullptr});
}

tuttiResult_t tuttiBarrierConfig(tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  return barrier("tuttiBarrierConfig", comm, {stream, config});
}

}  // extern "C"
