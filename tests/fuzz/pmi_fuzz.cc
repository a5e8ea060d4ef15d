// What a process manager answers on PMI_FD.
#include "base/error.h"
#include "fuzz/socket_pair.h"
#include "launch/pmi.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::SocketPair pair;
  pair.write(fuzz::Input(data, size).rest());
  pair.endOfStream();
  try {
    control::pmi::Client client(pair.ours.get(), Deadline::in(std::chrono::seconds(5)));
    client.put("key", "value");
    client.barrier();
    client.get("key");
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kRemote);
  }
  return 0;
}
