#include "kernels/cuda/trace.h"

#ifndef TUTTI_EMULATION
#include <nvtx3/nvToolsExt.h>

#include <new>

#include "process/process_object.h"
#endif

namespace tutti::cuda {

#ifdef TUTTI_EMULATION

TraceRange::TraceRange(const char*) noexcept {}
TraceRange::~TraceRange() {}

#else

namespace {

struct Domain {
  const nvtxDomainHandle_t handle = nvtxDomainCreateA("tutti");
};
nvtxDomainHandle_t domain() noexcept {
  try {
    return ofThisProcess<Domain>().handle;
  } catch (const std::bad_alloc&) {
    return nullptr;  // the one domain that all share
  }
}

}  // namespace

TraceRange::TraceRange(const char* name) noexcept {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &event);
}

TraceRange::~TraceRange() { nvtxDomainRangePop(domain()); }

#endif

}  // namespace tutti::cuda
