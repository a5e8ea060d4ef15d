// NCCL's variables, which its users set out of habit: none of them is read, and each is answered with the name of the
// one that does the same here.
#pragma once
#include <string>

#include "settings/settings.h"

namespace tutti::settings {

// One line about those that are set: which variables are theirs here, and which have none; empty where none is set.
std::string foreignNames(const Environment& environment);

}  // namespace tutti::settings
