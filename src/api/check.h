// The arguments of the calls: each check names the call and the argument.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "team/call.h"
#include "team/executor.h"
#include "tutti/tutti.h"

struct CUstream_st {
  uint32_t generation = 0;                        // of the process that made it: see process/fork.h
  std::shared_ptr<tutti::engine::Stream> stream;  // null once destroyed; the shell stays (api/handle_pool.h)
};

namespace tutti::api {

// The size that a caller's struct says is not believed beyond this: memory that nobody has filled says anything.
inline constexpr size_t kLargestStruct = 4096;

// Throws Error(kInvalidArgument). `what` begins with the argument.
[[noreturn]] void invalid(const char* call, const std::string& what);
// None is defined yet.
void checkFlags(unsigned int flags, const char* call);
void checkPointer(const void* pointer, const char* call, const char* argument);
// A buffer of `count` elements: may be NULL only when that is 0.
void checkBuffer(const void* buffer, size_t count, const char* call, const char* argument);
[[noreturn]] void refuseType(tuttiDataType_t type, const char* call);
inline DataType checkType(tuttiDataType_t type, const char* call) {
  const int row = rowOfNumber(static_cast<int>(type));
  if (row < 0) refuseType(type, call);
  return static_cast<DataType>(row);
}
// Throws the refusal of an operator that the type does not have (isDefined), with what to do instead.
[[noreturn]] void refuseUndefined(ReduceOp op, DataType type, const char* call);
int checkRank(int rank, int size, const char* call, const char* argument);
// count * parts * size of an element; throws when that does not fit into memory, or is of more elements than a call can
// have.
size_t checkBytes(size_t count, size_t parts, DataType type, const char* call);
// The two ranges may be the same memory, at the offset that "in place" means, but may not overlap otherwise.
void checkOverlap(const void* send, size_t sendBytes, const void* recv, size_t recvBytes, bool inPlace,
                  const char* call);
// Whether tuttiStreamCreate made it. Reads nothing through the pointer: CUDA's special streams are small numbers.
bool isStream(tuttiStream_t stream);
// Null for the NULL stream.
std::shared_ptr<engine::Stream> checkStream(tuttiStream_t stream, const char* call);
// A stream of the kind that the executor takes.
comm::CallStream checkStream(const comm::Executor& executor, tuttiStream_t stream, const char* call);

}  // namespace tutti::api
