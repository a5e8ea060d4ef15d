// Profiles as files, and what ranks compare of them.
#pragma once
#include <string>

#include "plan/profile.h"

namespace tutti::plan {

// The JSON of a file: every price by its name. `about` says what machine it is of, and how it was measured.
std::string profileText(const Profile& profile, const std::string& about);

// The other way. Prices that are not named keep the values that the library ships with. Throws
// Error(kInvalidArgument), with `source` in front, for what is no such JSON, a price that there is none of, or one that
// no machine has.
Profile profileFromText(const std::string& text, const std::string& source);

// Of a file; as profileFromText. Throws Error(kInvalidArgument) when it can not be read or has more than 64 KiB.
Profile readProfile(const std::string& path);

// Tells one profile from another, as ranks compare them: "shipped", or 16 hexadecimal digits.
std::string digestOf(const Profile& profile);

}  // namespace tutti::plan
