// What a rank of tutti-doctor net tells of the pairs that it was in.
#include "base/error.h"
#include "doctor/net/pair_records.h"
#include "fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::Input in(data, size);
  try {
    const auto pairs = doctor::net::decodePairs(in.rest());
    fuzz::require(doctor::net::encode(doctor::net::decodePairs(doctor::net::encode(pairs))) ==
                  doctor::net::encode(pairs));
    for (const auto& one : pairs) doctor::net::shortReason(one.why, one.transport);
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kRemote);
  }
  return 0;
}
