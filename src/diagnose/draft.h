// The names of records that are being written, and what becomes of those whose writers were killed meanwhile.
#pragma once
#include <string>

namespace tutti::comm {

// A name beside `path` that nobody else uses; it says which process of which host writes there.
std::string draftOf(const std::string& path);
// Removes the drafts in that folder whose processes were of this host and have ended. A folder may be shared by hosts:
// those of others stay, and all where this host cannot be told from another. What cannot be removed stays as well.
void removeOrphans(const std::string& folder) noexcept;

}  // namespace tutti::comm
