// --ranks: starts this program several times on this host.
#pragma once

namespace tutti::doctor::net {

// Starts `ranks` copies of this process as ranks of one job, waits for all and returns the worst exit status. A rank
// that ends by a signal counts as `trouble`. Throws Error where one cannot be started; then none stays.
int startLocally(int ranks, char** argv, int trouble);

// In such a copy: it ends with whoever started it.
void endWithParent();

}  // namespace tutti::doctor::net
