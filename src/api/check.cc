#include "api/check.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/error.h"
#include "process/fork.h"
#include "team/call.h"

namespace tutti::api {

void invalid(const char* call, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", call, what));
}

void checkPointer(const void* pointer, const char* call, const char* argument) {
  if (pointer == nullptr) invalid(call, fmt::format("{} is NULL", argument));
}

void checkFlags(unsigned int flags, const char* call) {
  if (flags != 0) invalid(call, fmt::format("flags is {:#x}: this version of tutti knows none; give 0", flags));
}

void checkBuffer(const void* buffer, size_t count, const char* call, const char* argument) {
  if (buffer == nullptr && count != 0)
    invalid(call, fmt::format("{} is NULL, but {} elements are asked for", argument, count));
}

static_assert(tuttiNumTypes == kNcclTypes && tuttiNumOps == kNcclOps);
static_assert(numberOf(static_cast<DataType>(kDataTypes - 1)) == tuttiUint16,
              "a type has a number in tutti.h, and a row in base/data_type.h");
static_assert(numberOf(DataType::kBool) == tuttiBool && numberOf(DataType::kInt16) == tuttiInt16);
static_assert(numberOf(ReduceOp::kAvg) == tuttiAvg && numberOf(ReduceOp::kBitAnd) == tuttiBitAnd &&
              numberOf(ReduceOp::kBitOr) == tuttiBitOr && numberOf(ReduceOp::kBitXor) == tuttiBitXor);

void refuseType(tuttiDataType_t type, const char* call) {
  invalid(call, fmt::format("type is {}: no data type has this number", static_cast<int>(type)));
}

namespace {

const char* remedyOf(DataType type) {
  if (type == DataType::kBool) return "to count or weigh truth values, convert them to a type of numbers first";
  switch (sizeOf(type)) {
    case 1:
      return "for its bits, give tuttiUint8";
    case 2:
      return "for its bits, give tuttiUint16";
    case 4:
      return "for its bits, give tuttiUint32";
    default:
      return "for its bits, give tuttiUint64";
  }
}

}  // namespace

void refuseUndefined(ReduceOp op, DataType type, const char* call) {
  invalid(call, fmt::format("op is {}, which is not defined for {}: {}", nameOf(op), nameOf(type), remedyOf(type)));
}

int checkRank(int rank, int size, const char* call, const char* argument) {
  if (rank < 0 || rank >= size)
    invalid(call, fmt::format("{} is {}: ranks of this communicator are 0 to {}", argument, rank, size - 1));
  return rank;
}

size_t checkBytes(size_t count, size_t parts, DataType type, const char* call) {
  size_t elements = 0, bytes = 0;
  if (__builtin_mul_overflow(count, parts, &elements) || __builtin_mul_overflow(elements, sizeOf(type), &bytes) ||
      bytes > PTRDIFF_MAX)
    invalid(call, fmt::format("count is {}: {} times that many elements of {} do not fit into memory", count, parts,
                              nameOf(type)));
  if (elements > comm::kMostElements)
    invalid(call, fmt::format("count is {}: {} times that many elements are more than a call can have, which is {}",
                              count, parts, comm::kMostElements));
  return bytes;
}

void checkOverlap(const void* send, size_t sendBytes, const void* recv, size_t recvBytes, bool inPlace,
                  const char* call) {
  const auto a = reinterpret_cast<uintptr_t>(send), b = reinterpret_cast<uintptr_t>(recv);
  if (inPlace || sendBytes == 0 || recvBytes == 0 || a + sendBytes <= b || b + recvBytes <= a) return;
  invalid(call, "send and recv overlap, but not as an operation in place does");
}

std::shared_ptr<engine::Stream> checkStream(tuttiStream_t stream, const char* call) {
  if (stream == nullptr) return nullptr;
  if (!isStream(stream))
    invalid(call, "stream is not one made by tuttiStreamCreate: host memory knows no others, and no stream of CUDA's");
  if (stream->generation != fork::generation())
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: stream belongs to the process that this one was forked from", call));
  if (!stream->stream) invalid(call, "stream was destroyed");
  return stream->stream;
}

// What CUDA would take for a stream of its own is none of tuttiStreamCreate's.
comm::CallStream checkStream(const comm::Executor& executor, tuttiStream_t stream, const char* call) {
  if (!executor.traits().takesCudaStreams) return {checkStream(stream, call), nullptr};
  if (stream != nullptr && isStream(stream))
    invalid(call, "stream is one made by tuttiStreamCreate, for host memory: a communicator on a GPU takes CUDA's");
  return {nullptr, stream};
}

}  // namespace tutti::api
