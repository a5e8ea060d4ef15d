// A secret that one rank hands to another through the hands of others, none of whom can open it or make one like it.
#pragma once
#include <span>

#include "base/bytes.h"
#include "job/unique_id.h"
#include "net/noise.h"

namespace tutti::control {

// One message of Noise's pattern K; `job` is what the secret is for, and the same at both ends.
inline constexpr size_t kParcelBytes = noise::kKeyBytes + kSecretBytes + noise::kTagBytes;

Bytes sealFor(const noise::Key& to, const noise::KeyPair& from, uint64_t job, const Secret& secret);
// Throws Error(kRemote) when it is not from that one, for this one and for that job.
Secret openFrom(const noise::Key& from, const noise::KeyPair& to, uint64_t job, std::span<const std::byte> parcel);

}  // namespace tutti::control
