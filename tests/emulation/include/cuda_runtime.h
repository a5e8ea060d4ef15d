// CUDA for the host compiler: what nvcc's <cuda_runtime.h> gives, as far as the project uses it, on emulated devices.
#pragma once
#include <cuda_runtime_api.h>
#include <driver_types.h>
#include <vector_types.h>

#include "emulation/device/intrinsics.h"
#include "emulation/device/language.h"
#include "emulation/runtime/launch.h"
