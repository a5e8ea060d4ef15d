// --ranks: starts this program several times on this host, and watches over the processes.
#pragma once
#include <string>

#include "perf/options.h"

namespace tutti::perf {

// Whether a launcher (or a parent of this program) has told this process its rank. Only whether: the library reads the
// rest.
bool launched();

// Starts `options.ranks` copies of this program, waits for all and returns the exit status: 0 when every rank's was.
// When one fails, it says which and how, lets the others report what they saw, and then ends them. Forwards SIGINT,
// SIGTERM and SIGHUP. Throws UsageError or Failure when a process cannot be started. Call it while this process has one
// thread.
int launchLocal(const Options& options);

// In a process that launchLocal started: ends it when the parent dies.
void followParent();

// "exit status 3", "killed by signal 9 (Killed)": of a waitpid status.
std::string describeEnd(int status);

}  // namespace tutti::perf
