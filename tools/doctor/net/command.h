// tutti-doctor net: what hosts and the network between them have, and what to mend.
#pragma once

namespace tutti::doctor::net {

// `argv` as main() has it, with "net" in its second place. Returns 0: nothing to mend; 1: something; 2: it could not be
// looked at. Of ranks above 0, which print nothing, 0 or 2.
int run(int argc, char** argv);

}  // namespace tutti::doctor::net
