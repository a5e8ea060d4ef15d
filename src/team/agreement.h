// What every rank of a communicator must have set alike.
#pragma once
#include "team/config.h"
#include "wire/join_request.h"

namespace tutti::comm {

// Each by the name that its user knows it by, with its value in words. What the ranks set differently would let them
// run one call in different ways, or wait for what never comes; so the root compares it while they join.
control::Agreement agreementOf(const Config& config);

}  // namespace tutti::comm
