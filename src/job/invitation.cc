#include "job/invitation.h"

#include "base/error.h"
#include "job/parcel.h"

namespace tutti::control {

Bytes invite(const UniqueId& id, const Secret& drawn, std::span<const noise::Key> keys, const noise::KeyPair& from) {
  UniqueId open = id;
  open.secret = {};
  const RawUniqueId raw = encode(open);
  Bytes told(raw.begin(), raw.end());
  for (const noise::Key& key : keys) {
    const Bytes parcel = sealFor(key, from, id.job, drawn);
    told.insert(told.end(), parcel.begin(), parcel.end());
  }
  return told;
}

UniqueId invitationOf(std::span<const std::byte> told, size_t place, const noise::Key& leader,
                      const noise::KeyPair& own) {
  if (told.size() < kUniqueIdBytes || (told.size() - kUniqueIdBytes) / kParcelBytes <= place)
    throw Error(ErrorCode::kRemote, "the rank that has the unique id told no place to meet at for this rank");
  UniqueId id = decodeTold(told.first(kUniqueIdBytes));
  id.secret = openFrom(leader, own, id.job, told.subspan(kUniqueIdBytes + place * kParcelBytes, kParcelBytes));
  return id;
}

}  // namespace tutti::control
