// What the host and a kernel tell each other, in the words of the port (src/device), for kernels to use as theirs.
#pragma once
#include "device/fold.h"
#include "device/program.h"

namespace tutti::cuda {

using device::chunkBytes;
using device::DeviceComm;
using device::Direct;
using device::End;
using device::Fault;
using device::Fold;
using device::KernelLaunch;
using device::KernelWork;
using device::kMaxInlineWorks;
using device::kMaxLinks;
using device::kMostFolded;
using device::kNobody;
using device::kWindows;
using device::MappedWindow;
using device::Program;
using device::Progress;
using device::Report;
using device::Shared;

}  // namespace tutti::cuda
