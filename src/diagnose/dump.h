// A communicator's story as a JSON file: who it is, what stopped it, its last calls and how far each came. tutti-doctor
// lays the files of all ranks side by side. docs/json.md has its keys.
//
// A call begins when it is made and the call before it on its line (for messages: with its peer) has ended. `id` is the
// same on every rank of one communicator and no other; it gives away nothing of the secret.
#pragma once
#include <string>

#include "team/executor.h"

namespace tutti::comm {

inline constexpr int kDumpFormat = 1;

// `executor`: the one that the communicator has.
std::string toJson(Executor& executor, const std::string& why);
// Writes the file as a whole or not at all; its user alone may read it. An earlier record is replaced, but nothing that
// is no regular file. Throws Error: kInvalidArgument for that, kSystem.
void writeDump(Executor& executor, const std::string& path, const std::string& why);
// tutti-<id>-rank<rank>.json
std::string dumpName(const Team& team);

}  // namespace tutti::comm
