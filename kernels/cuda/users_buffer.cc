#include "kernels/cuda/users_buffer.h"

#include "device/memory_record.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"

namespace tutti::cuda {
namespace {

using Record = device::BufferRecord;

// The buffer in its allocation, which has to hold all of it.
Allocation allocationOf(const Context& context, const std::byte* buffer, size_t bytes) {
  const Allocation all = allocationAround(context, buffer);
  if (bytes <= all.bytes - static_cast<size_t>(buffer - all.begin)) return all;
  throw Error(ErrorCode::kCuda,
              fmt::format("GPU {}: a buffer of {} bytes lies in several allocations", context.ordinal(), bytes));
}

// Physical memory, for as long as this lives.
class Held {
 public:
  Held(const Context& context, const std::byte* buffer) : gpu_(context.ordinal()) {
    const CUresult result = driver().retainHandle(&handle_, const_cast<std::byte*>(buffer));
    if (result == CUDA_ERROR_INVALID_VALUE)
      throw Error(ErrorCode::kCuda, fmt::format("GPU {}: memory of cudaMalloc and its like is for one process alone "
                                                "(tuttiMemAllocDevice gives memory that is not)",
                                                gpu_));
    check(statusOf(result), gpu_, "finding the memory of a buffer");
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { complain(statusOf(driver().release(handle_)), gpu_, "letting go of memory"); }

  bool goesBy(CUmemAllocationHandleType type) const {
    CUmemAllocationProp properties{};
    check(statusOf(driver().propertiesOf(&properties, handle_)), gpu_, "asking how memory can be shared");
    return (properties.requestedHandleTypes & type) != 0;
  }
  void exportTo(void* shareable, CUmemAllocationHandleType type) const {
    check(statusOf(driver().exportHandle(shareable, handle_, type, 0)), gpu_, "exporting a buffer");
  }

 private:
  int gpu_;
  CUmemGenericAllocationHandle handle_ = 0;
};

class Accepted : public device::DeviceMemory {
 public:
  Accepted(std::unique_ptr<Virtual> whole, const Record& record) : whole_(std::move(whole)) {
    data = whole_->data() + record.offset;
    bytes = record.bytes;
  }

 private:
  std::unique_ptr<Virtual> whole_;
};

bool says(CUpointer_attribute attribute, const std::byte* buffer) {
  int value = 0;  // the driver writes one byte of it, or all
  return driver().pointerAttribute(&value, attribute, reinterpret_cast<CUdeviceptr>(buffer)) == CUDA_SUCCESS &&
         value != 0;
}

}  // namespace

device::BufferOffer offerBuffer(const Context& context, const std::byte* buffer, size_t bytes) {
  const RelaxedCaptureScope aside(context);
  const Held held(context, buffer);
  const Allocation all = allocationOf(context, buffer, bytes);
  device::BufferOffer offer;
  Record record{all.bytes, static_cast<uint64_t>(buffer - all.begin), bytes, {}};
  if (held.goesBy(CU_MEM_HANDLE_TYPE_FABRIC)) {
    held.exportTo(record.fabric.emplace().data(), CU_MEM_HANDLE_TYPE_FABRIC);
  } else if (held.goesBy(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
    int descriptor = -1;
    held.exportTo(&descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    offer.descriptor = UniqueFd(descriptor);
  } else {
    throw Error(ErrorCode::kCuda,
                fmt::format("GPU {}: the buffer's memory was made to be shared with nobody", context.ordinal()));
  }
  offer.record = encode(record);
  return offer;
}

std::unique_ptr<device::DeviceMemory> acceptBuffer(const SharedContext& context, std::span<const std::byte> bytes,
                                                   const UniqueFd& descriptor) {
  const Record record = Record::read(bytes);
  if (!record.fabric && !descriptor) throw Error(ErrorCode::kRemote, "a peer's buffer came without its descriptor");
  auto whole = record.fabric ? Virtual::import(context, *record.fabric, record.wholeBytes)
                             : Virtual::import(context, descriptor.get(), record.wholeBytes);
  return std::make_unique<Accepted>(std::move(whole), record);
}

// Memory of cudaMalloc is open to every GPU that has enabled peer access, which reach() does. That of the driver's
// virtual memory management is open to whom its maker opened it. Of pools, which are opened one by one, we use nothing.
bool opensTo(const Context& context, const std::byte* buffer, int peerOrdinal) {
  const RelaxedCaptureScope aside(context);
  if (says(CU_POINTER_ATTRIBUTE_IS_MANAGED, buffer) || says(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, buffer))
    return true;
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = peerOrdinal;
  unsigned long long access = 0;
  return driver().getAccess(&access, &location, reinterpret_cast<CUdeviceptr>(buffer)) == CUDA_SUCCESS &&
         access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

}  // namespace tutti::cuda
