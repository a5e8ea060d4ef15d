// A communicator's story as a JSON file: who it is, what stopped it, its last calls and how far each came. tutti-doctor
// lays the files of all ranks side by side.
//
//   { "tutti": {"version", "format": 1}, "communicator": {"id", "name", "rank", "size", "host", "pid"},
//     "ranks": [{"rank", "host", "pid"}...], "why": text, "error": null | {"code", "text"}, "writtenNs": since 1970,
//     "calls": [{"order", "line": "collective" | "send" | "receive", "number", "kind", "type", "count", "bytes",
//                "op"?, "root"?, "peer"?, "state", "algorithm"?, "waitingFor"?, "roundsDone", "rounds",
//                "queuedNs", "endedNs"?}...] }                                          oldest call first
//
// A call begins when it is made and the call before it on its line (for messages: with its peer) has ended.
// `count` is the fingerprint's: elements of the whole message, or of one rank's part where each rank has its own. `id`
// is the same on every rank of one communicator and no other; it gives away nothing of the secret.
#pragma once
#include <string>

namespace tutti::comm {

class Communicator;

inline constexpr int kDumpFormat = 1;

std::string toJson(const Communicator& communicator, const std::string& why);
// Writes the file as a whole or not at all. Throws Error(kSystem).
void writeDump(const Communicator& communicator, const std::string& path, const std::string& why);
// tutti-<id>-rank<rank>.json
std::string dumpName(const Communicator& communicator);

}  // namespace tutti::comm
