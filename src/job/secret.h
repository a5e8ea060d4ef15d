// What a user gives for a secret, as text: how a key is made of it, and whether it could be guessed.
#pragma once
#include <string>
#include <string_view>

#include "job/unique_id.h"

namespace tutti::control {

// The key, by Argon2id (RFC 9106) with 16 MiB and three passes: who guesses at the text pays that for each guess.
// `place` is what the ranks that are to meet have in common, and is bound into the salt: what was computed for one job
// is of no use against another. A process computes it once, and remembers the last. Any thread. Throws Error(kSystem)
// when there is no memory for it.
Secret secretFromText(const std::string& text, const std::string& place);

// How many bits at least a guess must be expected to take, by what the text looks like: random digits or letters count
// by their alphabet, whatever else as a sentence would, and what is repeated counts once. An estimate, for a warning.
double strengthOf(std::string_view text);
inline constexpr double kEnoughBits = 128;

}  // namespace tutti::control
