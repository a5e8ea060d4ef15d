// Unique ids as bytes and in hex.
#include "base/error.h"
#include "base/random.h"
#include "fuzz/input.h"
#include "job/unique_id.h"

namespace tutti::fuzz {
namespace {

using namespace tutti::control;

void readBytes(Input in, bool signedRight) {
  RawUniqueId raw{};
  const auto given = in.rest();
  std::copy_n(given.begin(), std::min(given.size(), raw.size()), raw.begin());
  if (signedRight) {  // a checksum keeps nobody out who means harm
    std::memcpy(raw.data(), "tuI\1", 4);
    hashInto(raw.data() + raw.size() - 4, 4, raw.data(), raw.size() - 4);
  }
  const UniqueId id = decode(raw);
  const UniqueId again = decode(encode(id));
  require(again.secret == id.secret && again.job == id.job && again.addresses == id.addresses);
  for (const Address& address : id.addresses) require(!toString(address).empty());
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::Input in(data, size);
  const auto how = in.take<uint8_t>();
  try {
    if (how % 3 == 0) {
      const std::string text = in.text();
      tutti::fuzz::require(tutti::control::toHex(tutti::control::fromHex(text)).size() == text.size());
    } else {
      tutti::fuzz::readBytes(in, how % 3 == 1);
    }
  } catch (const tutti::Error& error) {
    tutti::fuzz::require(error.code() == tutti::ErrorCode::kInvalidArgument);
  }
  return 0;
}
