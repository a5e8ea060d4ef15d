// The records by which ranks tell each other of a GPU's memory, and of what joins their GPUs: what is read comes out
// the same when it is written and read again, a buffer lies within its allocation, and the verdict on all views is one.
#include "device/gpu_links.h"
#include "device/memory_record.h"
#include "fuzz/input.h"

namespace tutti::fuzz {
namespace {

using device::BufferRecord;
using device::MemoryRecord;

Bytes memoryRecord(Input& in) {
  MemoryRecord record;
  record.pid = in.take<int32_t>();
  record.bytes = in.take<uint64_t>();
  record.offset = in.take<uint64_t>();
  const auto how = in.take<uint8_t>();
  if (how % 2 != 0) record.handle = in.take<device::MemoryHandle>();
  if (how / 2 % 2 != 0) record.fabric = in.take<device::MemoryHandle>();
  return encode(record);
}

Bytes bufferRecord(Input& in) {
  BufferRecord record{in.take<uint64_t>(), in.take<uint64_t>(), in.take<uint64_t>(), {}};
  if (in.take<uint8_t>() % 2 != 0) record.fabric = in.take<device::MemoryHandle>();
  return encode(record);
}

void readMemory(std::span<const std::byte> bytes) {
  const Bytes once = encode(MemoryRecord::read(bytes));
  require(encode(MemoryRecord::read(once)) == once);
}

void readBuffer(std::span<const std::byte> bytes) {
  const BufferRecord record = BufferRecord::read(bytes);
  require(record.offset <= record.wholeBytes && record.bytes <= record.wholeBytes - record.offset);
  const Bytes once = encode(record);
  require(encode(BufferRecord::read(once)) == once);
}

void readJoints(Input& in) {
  std::vector<device::JointView> views;
  for (int count = in.take<uint8_t>() % 4; count > 0; --count)
    views.push_back(device::decodeJoints(in.bytes(in.take<uint8_t>())));
  const device::JointVerdict verdict = device::judge(views);
  require(verdict.linesMoveWhole || !verdict.text.empty());
}

void run(Input in) {
  switch (in.take<uint8_t>() % 5) {
    case 0:
      return readMemory(in.rest());
    case 1:
      return readMemory(memoryRecord(in));
    case 2:
      return readBuffer(in.rest());
    case 3:
      return readBuffer(bufferRecord(in));
    default:
      return readJoints(in);
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tutti::fuzz::run({data, size});
  } catch (const tutti::Error& error) {
    tutti::fuzz::require(error.code() == tutti::ErrorCode::kRemote);
  }
  return 0;
}
