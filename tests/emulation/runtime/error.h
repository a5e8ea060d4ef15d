// The calling thread's last error.
#pragma once
#include <driver_types.h>

namespace tutti::emulation {

// Remembers an error for cudaGetLastError(), and gives it back.
cudaError_t note(cudaError_t error) noexcept;

}  // namespace tutti::emulation
