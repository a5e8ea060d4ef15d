// A rank of a job in which one is killed: what the processes do that tutti_kill starts.
#pragma once

namespace tutti::faults {

// Arguments: rank, seed, transports. Speaks with the harness over its wire:
//   rank -> harness  id HEX            of the world, by rank 0
//   harness -> rank  id HEX
//   rank -> harness  ready
//                    wrong TEXT        a result was wrong
//                    known NS CODE NS CODE \n TEXT \n TEXT
//                                      its call ended, then, once the world knew too, a barrier on it:
//                                      when, and with what
//   harness -> rank  shrink RANK...    shrink the newest communicator without these, and reduce over it
//                    make              make an id for a new communicator: answered with id HEX
//                    join HEX RANK SIZE
//                    end               leave
//   rank -> harness  recovered RANK SIZE SUM | failed TEXT
//                    held BEFORE AFTER BEFORE AFTER TEXT     descriptors, threads
int runKillRank(int argc, char** argv);

}  // namespace tutti::faults
