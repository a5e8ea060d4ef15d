// The payloads of control frames: whatever decodes must come out the same when it is encoded and decoded again.
#include "control/gathering.h"
#include "fuzz/input.h"
#include "wire/messages.h"

namespace tutti::fuzz {
namespace {

using namespace tutti::control;

template <class Decode>
void throughAndBack(std::span<const std::byte> bytes, Decode decode) {
  const Bytes once = encode(decode(bytes));
  require(encode(decode(once)) == once);
}

void decodeAny(uint8_t kind, std::span<const std::byte> bytes) {
  if (kind == 255) return throughAndBack(bytes, decodeShrinkDiffer);
  switch (kind % 11) {
    case 0:
      return throughAndBack(bytes, decodeHello);
    case 1:
      return throughAndBack(bytes, decodePlace);
    case 2:
      return throughAndBack(bytes, decodeRefusal);
    case 3:
      return throughAndBack(bytes, decodeStreamHello);
    case 4:
      return throughAndBack(bytes, decodeMail);
    case 5:
      return throughAndBack(bytes, decodeRecord);
    case 6:
      return throughAndBack(bytes, decodeFailure);
    case 7:
      return throughAndBack(bytes, decodeShrinkCall);
    case 8:
      return throughAndBack(bytes, decodeShrinkTry);
    case 9:
      return throughAndBack(bytes, decodeShrinkTried);
    default: {
      const auto table = Gathering::toTable(bytes, kind / 11);
      require(table.size() == kind / 11U);
    }
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::Input in(data, size);
  const auto kind = in.take<uint8_t>();
  try {
    tutti::fuzz::decodeAny(kind, in.rest());
  } catch (const tutti::Error& error) {
    tutti::fuzz::require(error.code() == tutti::ErrorCode::kRemote);
  }
  return 0;
}
