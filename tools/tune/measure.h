// Measures a sweep by the programs of bench/perf, which stand beside this one: as users measure, from outside.
#pragma once
#include <string>
#include <vector>

#include "tune/sweep.h"

namespace tutti::tune {

struct Wish {
  std::vector<Collective> collectives;
  std::vector<std::string> transports = {"p2p", "shm", "tcp"};
  std::vector<int> ranks = {2, 4, 8};
  size_t minBytes = 8, maxBytes = 16 << 20;  // as the programs count them; by factors of 8
  int rounds = 5;                            // times that all is measured, so that a disturbance meets everything alike
};

// Tells on standard error how far it is. Throws Error: kInvalidArgument for a wish that nothing fulfils, kSystem where
// a program cannot be started or ends badly, with what it was.
Sweep measure(const Wish& wish);

}  // namespace tutti::tune
