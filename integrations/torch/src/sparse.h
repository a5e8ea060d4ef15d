// The sum of sparse tensors over ranks.
#pragma once
#include "calls.h"

namespace tutti_torch {

// Every rank's indices and values are gathered, and added up. The tensor becomes the sum, coalesced. Ranks may have
// different numbers of values; shapes are the same. On a GPU the caller waits until all have told how many.
void sparseAllReduce(Calls& calls, const at::Tensor& tensor, int ranks);

}  // namespace tutti_torch
