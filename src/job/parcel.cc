#include "job/parcel.h"

#include "base/error.h"

namespace tutti::control {

Bytes sealFor(const noise::Key& to, const noise::KeyPair& from, uint64_t job, const Secret& secret) {
  noise::Session session(noise::kK, true, std::as_bytes(std::span(&job, 1)), {}, from, to);
  Bytes parcel(kParcelBytes);
  if (!session.write(secret, parcel.data()))
    throw Error(ErrorCode::kRemote, "a secret cannot be sealed for a rank whose key is none");
  return parcel;
}

Secret openFrom(const noise::Key& from, const noise::KeyPair& to, uint64_t job, std::span<const std::byte> parcel) {
  noise::Session session(noise::kK, false, std::as_bytes(std::span(&job, 1)), {}, to, from);
  Secret secret{};
  if (parcel.size() != kParcelBytes || !session.read(parcel, secret.data()))
    throw Error(ErrorCode::kRemote,
                "the secret of the new communicator was not sealed for this rank, or not by its leader");
  return secret;
}

}  // namespace tutti::control
