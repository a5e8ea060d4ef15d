// A session whose ranks are in several processes: this program again, each with some of the ranks as its threads.
#pragma once
#include "random/session.h"

namespace tutti::faults {

// Ends the program with status 1 when one of them fails.
void runApart(const Session& session, int processes);
// What main() of such a process does.
int runAsProcess(int argc, char** argv);

}  // namespace tutti::faults
