// What the leader of a split tells all ranks, bent on the way or made up: a rank reads the leader's secret in it or
// none, and reads it only in its own place.
#include "job/invitation.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "fuzz/input.h"

namespace tutti::fuzz {
namespace {

using control::UniqueId;

constexpr size_t kMembers = 2;

struct Job {
  noise::KeyPair leader = noise::drawKeyPair();
  std::array<noise::KeyPair, kMembers> members{noise::drawKeyPair(), noise::drawKeyPair()};
  control::Secret drawn{};
  UniqueId id;
  Bytes told;

  Job() {
    drawn.fill(std::byte{0x5a});
    id.job = 7;
    id.addresses.resize(2);
    const std::array keys{members[0].open, members[1].open};
    told = control::invite(id, drawn, keys, leader);
  }
};

void read(const Job& job, std::span<const std::byte> told, size_t place, size_t reader) {
  try {
    const UniqueId id = control::invitationOf(told, place, job.leader.open, job.members[reader]);
    require(id.secret == job.drawn && id.job == job.id.job && place == reader);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kRemote);
    const bool whole = told.size() == job.told.size() && std::equal(told.begin(), told.end(), job.told.begin());
    require(!whole || place != reader);
  }
}

void run(Input in) {
  static const Job job;
  const auto how = in.take<uint8_t>();
  const size_t place = how / 4 % 4, reader = how / 16 % kMembers;
  if (how % 4 == 3) return read(job, in.rest(), place, reader);
  Bytes told = job.told;
  for (int changes = how % 4; changes > 0; --changes) {
    const auto at = in.take<uint16_t>();
    told[at % told.size()] ^= std::byte{in.take<uint8_t>()};
  }
  const auto cut = in.take<uint8_t>();
  told.resize(told.size() - cut);
  read(job, told, place, reader);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::run({data, size});
  return 0;
}
