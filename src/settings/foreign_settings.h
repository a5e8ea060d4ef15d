// NCCL's variables, which its users set out of habit: none of them is read, and each is answered with the name of the
// one that does the same here.
#pragma once
#include <string>

#include "settings/settings.h"

namespace tutti::settings {

// One line about those that are set: which variables are theirs here, and which have none; empty where none is set.
std::string foreignNames(const Environment& environment);

// Tells it, the first time it is called in a process. As a warning, because someone who sets NCCL_DEBUG=INFO and does
// not know our names would never see less; as information where TUTTI_DEBUG is set, with which a job that has such
// variables for another library's sake is kept quiet.
void tellForeignNames();

}  // namespace tutti::settings
