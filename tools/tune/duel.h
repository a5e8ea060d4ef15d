// Judges the plan's choices by new times: every cell of a sweep again, the choice against what is nearly as fast or
// faster there, in turn, in the same processes (tune/match.h).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tune/match.h"

namespace tutti::tune {

struct DuelWish {
  std::string sweep, profile;  // files; no profile: the prices that the library ships with
  std::string cells = ".";     // as pickedFrom() has it
  size_t most = 0;
  double seconds = 10;  // for a cell, as Match has it
};

// The cells of one transport and number of ranks, which one job plays: what its ranks are told by their command line.
struct Part {
  std::string transport;
  int ranks = 0;
};

// Tells on standard error how far it is, and `each` what came of a cell as soon as it is known: a duel takes long, and
// may be cut. Throws Error: kInvalidArgument for files and wishes, kSystem where ranks cannot be started or end badly,
// with what they said.
std::vector<Outcome> duel(const DuelWish& wish, const std::function<void(const Outcome&)>& each);

// What duel() starts as ranks does this.
void playPart(const DuelWish& wish, const Part& part);

// Who was missed and who is open, and at the end what came of all.
std::string tableOf(const std::vector<Outcome>& outcomes, bool all);

}  // namespace tutti::tune
