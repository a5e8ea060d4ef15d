// Memory of a GPU by the driver's virtual memory management: physical memory that can be handed out, by a descriptor or
// a handle for the fabric between hosts, mapped at an address of this process, for all of its GPUs that reach it.
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "kernels/cuda/memory.h"

namespace tutti::cuda {

using FabricHandle = std::array<std::byte, sizeof(CUmemFabricHandle)>;

class Virtual {
 public:
  // Whose it is: users' is shareable by all means that there are, peers' over the fabric or not made at all.
  enum class Use { kUsers, kPeers };

  // Null where this GPU can not make such memory, or has none left. A handle of the fabric has been tried.
  static std::unique_ptr<Virtual> make(const SharedContext& context, size_t bytes, Use use) noexcept;
  // The length of what make() makes for so many bytes.
  static size_t wholeBytes(const Context& context, size_t bytes, int handles);
  // Memory of another process, of this host or another one: all of it, `wholeBytes`. Throws Error(kCuda).
  static std::unique_ptr<Virtual> import(const SharedContext& context, const FabricHandle& handle, size_t wholeBytes);
  // By a descriptor, which stays the caller's: of this host.
  static std::unique_ptr<Virtual> import(const SharedContext& context, int descriptor, size_t wholeBytes);
  Virtual(const Virtual&) = delete;
  Virtual& operator=(const Virtual&) = delete;
  ~Virtual();

  std::byte* data() const noexcept { return reinterpret_cast<std::byte*>(address_); }
  const std::optional<FabricHandle>& fabric() const noexcept { return fabric_; }

 private:
  explicit Virtual(SharedContext context) : context_(std::move(context)) {}
  static std::unique_ptr<Virtual> import(const SharedContext& context, void* shareable, CUmemAllocationHandleType type,
                                         size_t wholeBytes, const char* remedy);
  static std::unique_ptr<Virtual> tryToMake(const SharedContext& context, size_t bytes, int handles);
  void create(const CUmemAllocationProp& properties);
  void exportToFabric();
  void map();
  void open(int gpu);
  void openForAll();

  SharedContext context_;
  size_t bytes_ = 0;  // whole granules
  std::optional<CUmemGenericAllocationHandle> physical_;
  CUdeviceptr address_ = 0;
  bool mapped_ = false;
  std::optional<FabricHandle> fabric_;
};

}  // namespace tutti::cuda
