// What a rank tells of its host.
#include "base/error.h"
#include "fuzz/input.h"
#include "preflight/host_report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::Input in(data, size);
  try {
    const auto bytes = in.rest();
    const auto again = preflight::encode(preflight::decodeHostReport(bytes));
    fuzz::require(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kRemote);
  }
  return 0;
}
