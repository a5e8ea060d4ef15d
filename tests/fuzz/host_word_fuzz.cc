// What a rank tells of the links of its host, and what all make of it.
#include "base/error.h"
#include "fuzz/input.h"
#include "site/host_word.h"
#include "site/site.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::Input in(data, size);
  std::vector<topology::PeerInfo> infos(4);
  infos[2].hostId = infos[3].hostId = 1;
  try {
    const auto rest = in.rest();
    const Bytes bytes(rest.begin(), rest.end());
    fuzz::require(encode(site::decodeHostWord(bytes)) == bytes);
    const site::Site site = site::siteOf(infos, std::vector<Bytes>{bytes, {}, {}, {}});
    fuzz::require(site.within.empty() || site.within.size() == infos.size());
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kRemote);
  }
  return 0;
}
