// A communicator's story as a JSON file: who it is, what stopped it, its last calls and how far each came. tutti-doctor
// lays the files of all ranks side by side. docs/json.md has its keys.
//
// A call begins when it is made and the call before it on its line (for messages: with its peer) has ended. `id` is the
// same on every rank of one communicator and no other; it gives away nothing of the secret.
#pragma once
#include <string>

namespace tutti::comm {

class Communicator;

inline constexpr int kDumpFormat = 1;

std::string toJson(const Communicator& communicator, const std::string& why);
// Writes the file as a whole or not at all; its user alone may read it. An earlier record is replaced, but nothing that
// is no regular file. Throws Error: kInvalidArgument for that, kSystem.
void writeDump(const Communicator& communicator, const std::string& path, const std::string& why);
// tutti-<id>-rank<rank>.json
std::string dumpName(const Communicator& communicator);

}  // namespace tutti::comm
