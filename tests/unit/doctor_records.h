// Records made by hand, for tests of tutti-doctor.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "doctor/records.h"

namespace tutti::doctor::test {

constexpr int64_t kSecond = 1'000'000'000, kStart = 1'700'000'000 * kSecond;

// A collective that began `at` seconds after the start and took a millisecond.
inline Call collective(uint64_t number, Collective kind = Collective::kAllReduce, double at = 0) {
  Call call;
  call.order = number;
  call.number = number;
  call.kind = kind;
  call.type = DataType::kFloat32;
  call.count = 1024;
  call.bytes = 4096;
  if (reduces(kind)) call.op = ReduceOp::kSum;
  if (hasRoot(kind)) call.root = 0;
  call.state = State::kDone;
  call.algorithm = "ring";
  call.queuedNs = kStart + static_cast<int64_t>(at * 1e9);
  call.endedNs = call.queuedNs + kSecond / 1000;
  return call;
}

inline Call unfinished(Call call, int waitingFor = -1, State state = State::kRunning) {
  call.state = state;
  if (waitingFor >= 0) call.waitingFor = waitingFor;
  call.endedNs.reset();
  return call;
}

inline Call message(Line line, int peer, uint64_t number, uint64_t order) {
  Call call = collective(number, Collective::kSendRecv);
  call.line = line;
  call.peer = peer;
  call.order = order;
  return call;
}

// A rank's record, written 10 s after the start. Rank r is process 100 + r on host n<r>.
inline Record record(int rank, int size, std::vector<Call> calls) {
  Record one;
  one.file = fmt::format("rank{}.json", rank);
  one.version = "0.1.0";
  one.communicator = "0123456789abcdef";
  one.rank = rank;
  one.size = size;
  for (int r = 0; r < size; ++r) one.people.push_back({fmt::format("n{}", r), 100 + r});
  one.why = "SIGUSR2";
  one.writtenNs = kStart + 10 * kSecond;
  one.calls = std::move(calls);
  return one;
}

inline Job jobOf(std::vector<Record> records) { return groupRecords(std::move(records)).at(0); }

}  // namespace tutti::doctor::test
