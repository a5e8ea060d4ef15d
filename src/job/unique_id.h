// The 128 bytes with which the ranks of a communicator find and trust each other.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"

namespace tutti::control {

inline constexpr size_t kUniqueIdBytes = 128;
inline constexpr size_t kSecretBytes = 16;

using Secret = std::array<std::byte, kSecretBytes>;
using RawUniqueId = std::array<std::byte, kUniqueIdBytes>;

struct UniqueId {
  Secret secret{};
  uint64_t job = 0;                // names the root's abstract Unix socket; public
  std::vector<Address> addresses;  // of the root, best first; as many as fit are kept
  // No part of the 128 bytes, and never told to the root: what the user has given beside it (TUTTI_SECRET), as a key.
  // Zeros: nothing.
  Secret beside{};
  // For texts, and as little: where ranks meet that were not handed an id ("at n1:29500"), and which variables must be
  // alike on all of them for that, beside the secret. Empty: the id was handed over.
  std::string place, alike;
  bool ofOneUser = false;  // ranks of another user would look elsewhere
  std::string taken;       // why this rank 0 could not open the root: somebody else may have. Empty: it could
  // As little: a folder of the user's, in which the root leaves a name that it has drawn (job/root_name.h). Empty:
  // there is none.
  std::string folder;
  bool exposed = false;  // as little: see isExposed(), where the secret says no more by itself
};

// Whether everyone knows its secret: the launcher gave none. Then the root draws one, and hands it to each rank that it
// places; the ranks let nobody in who does not prove that one.
bool isPublic(const UniqueId& id) noexcept;

// Whether these ranks, or those of the communicator that theirs is made of, meet at an address without a secret.
// Whoever reaches that could come between them then, and know whatever they draw and derive later.
bool isExposed(const UniqueId& id) noexcept;

// What ranks prove to each other: with something beside the id, both, so that neither is enough.
Secret provenBy(const UniqueId& id) noexcept;
// By which the root sees whether all have given the same beside the id, without learning it.
Secret markOf(const Secret& beside) noexcept;

// The id of a communicator that is made of another one's ranks: its secret follows from the parent's and from that of
// `told`, which its root has drawn, and which only the ranks that it is for have been told (job/parcel.h).
UniqueId inherit(UniqueId told, const UniqueId& parent);

RawUniqueId encode(const UniqueId& id);
// Throws Error(kInvalidArgument) when the bytes are not a unique id of this version (checked by a magic and a
// checksum).
UniqueId decode(const RawUniqueId& raw);
// The same of what a peer has told: throws Error(kRemote), also for another length.
UniqueId decodeTold(std::span<const std::byte> raw);

std::string toHex(const RawUniqueId& raw);
RawUniqueId fromHex(std::string_view text);  // throws Error(kInvalidArgument)

}  // namespace tutti::control
