// The protocols: what moves their data, each in a file of its name. Their rows are in device/protocol.h.
#pragma once
#include <algorithm>

#include "kernels/cuda/ll.cuh"
#include "kernels/cuda/ll128.cuh"
#include "kernels/cuda/simple.cuh"

namespace tutti::cuda {

template <class... Protocols>
struct ProtocolList {
  // Calls visit(Protocol()) with the one that has the number.
  template <class Visit>
  static __device__ void with(Protocol number, Visit visit) {
    ((number == Protocols::kProtocol ? visit(Protocols()) : void()), ...);
  }
  static constexpr Protocol kNumbers[] = {Protocols::kProtocol...};
};

using EveryProtocol = ProtocolList<SimpleProtocol, LLProtocol, LL128Protocol>;
static_assert(std::ranges::equal(EveryProtocol::kNumbers, kEveryProtocol), "a row of device/protocol.h has no mover");

}  // namespace tutti::cuda
