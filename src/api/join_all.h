// All ranks of a communicator in this process.
#pragma once
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace tutti::api {

// `devices`: null, or each rank's. Throws the Error of the first rank that fails.
std::vector<std::shared_ptr<comm::Communicator>> joinAll(int ranks, const int* devices);

}  // namespace tutti::api
