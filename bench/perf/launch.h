// --ranks: starts this program several times on this host, and watches over the processes.
#pragma once
#include <string>

#include "perf/options.h"
#include "perf/signals.h"

namespace tutti::perf {

// Starts `options.ranks` copies of this program, waits for all and returns the exit status: 0 when every rank's was.
// When one fails, it says which and how, lets the others report what they saw, and then ends them. Forwards SIGINT,
// SIGTERM, SIGHUP and SIGUSR2. Throws Failure when a process cannot be started.
int launchLocal(const Options& options, const HeldSignals& signals);

// Whether launchLocal started this process, which then never starts any itself. If so: ends it when the parent dies,
// and puts the program's path and name to where ps and the report look for them. Throws UsageError when the parent is
// not there.
bool followParent(Options& options, const char* program);

// "exit status 3", "killed by signal 9 (Killed)": of a waitpid status.
std::string describeEnd(int status);

}  // namespace tutti::perf
