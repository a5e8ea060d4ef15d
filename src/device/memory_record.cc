#include "device/memory_record.h"

#include <cstring>

#include "base/error.h"

namespace tutti::device {
namespace {

// Each names the form of its record, and changes with it.
constexpr uint32_t kMemoryMagic = 0x74754d33, kBufferMagic = 0x74754231;

template <class Target>
void fill(Target& target, std::span<const std::byte> block, const char* what) {
  if (block.size() != sizeof target)
    throw Error(ErrorCode::kRemote, fmt::format("a record of a GPU's memory has {} bytes for its {}, not {}",
                                                block.size(), what, sizeof target));
  std::memcpy(&target, block.data(), sizeof target);
}

template <class Target>
void fill(std::optional<Target>& target, std::span<const std::byte> block, const char* what) {
  if (!block.empty()) fill(target.emplace(), block, what);
}

std::span<const std::byte> orNothing(const std::optional<MemoryHandle>& handle) {
  return handle ? std::span<const std::byte>(*handle) : std::span<const std::byte>();
}

}  // namespace

Bytes encode(const MemoryRecord& record) {
  return Writer()
      .value(kMemoryMagic)
      .value(record.pid)
      .value(record.ticket)
      .block(std::as_bytes(std::span(record.uuid)))
      .value(record.bytes)
      .value(record.offset)
      .block(orNothing(record.handle))
      .block(orNothing(record.fabric))
      .take();
}

MemoryRecord MemoryRecord::read(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.value<uint32_t>() != kMemoryMagic)
    throw Error(ErrorCode::kRemote,
                "a peer sent something else than a record of a GPU's memory: do all ranks run the same version?");
  MemoryRecord record;
  record.pid = in.value<int32_t>();
  record.ticket = in.value<uint64_t>();
  fill(record.uuid, in.block(), "GPU");
  record.bytes = in.value<uint64_t>();
  record.offset = in.value<uint64_t>();
  fill(record.handle, in.block(), "handle");
  fill(record.fabric, in.block(), "handle of the fabric");
  if (!in.empty()) throw Error(ErrorCode::kRemote, "a record of a GPU's memory goes on behind its end");
  return record;
}

Bytes encode(const BufferRecord& record) {
  return Writer()
      .value(kBufferMagic)
      .value(record.wholeBytes)
      .value(record.offset)
      .value(record.bytes)
      .block(orNothing(record.fabric))
      .take();
}

BufferRecord BufferRecord::read(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.value<uint32_t>() != kBufferMagic)
    throw Error(ErrorCode::kRemote,
                "a peer sent something else than a record of a buffer: do all ranks run the same version?");
  BufferRecord record{in.value<uint64_t>(), in.value<uint64_t>(), in.value<uint64_t>(), {}};
  fill(record.fabric, in.block(), "handle of the fabric");
  if (!in.empty() || record.offset > record.wholeBytes || record.bytes > record.wholeBytes - record.offset)
    throw Error(ErrorCode::kRemote, "a peer's record of a buffer contradicts itself");
  return record;
}

}  // namespace tutti::device
