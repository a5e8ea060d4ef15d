// Memory that the host and every GPU reach at the same address.
#pragma once
#include <memory_resource>

namespace tutti::test {

// Of cudaMallocManaged, in pools: an allocation of CUDA's takes longer than a test. Lives as long as the program.
std::pmr::memory_resource& managedMemory();

}  // namespace tutti::test
