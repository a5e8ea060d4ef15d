// The shared memory of one block: a dynamic part, as large as the launch says, and objects that exist once in a block.
// Poisoned at the start, so that what nobody wrote shows.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace tutti::emulation {

inline constexpr unsigned char kPoison = 0xCB;
inline constexpr size_t kStaticSharedBytes = 48 * 1024;

class SharedMemory {
 public:
  explicit SharedMemory(size_t dynamicBytes);
  ~SharedMemory();

  std::byte* dynamic() const noexcept { return dynamic_.get(); }
  // The object known by `key`, null when there is no room for another one.
  void* object(const void* key, size_t bytes, size_t alignment) noexcept;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Object {
    const void* key;
    void* memory;
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  static Memory poisoned(size_t bytes);

  Memory dynamic_, static_;
  size_t used_ = 0;
  std::vector<Object> objects_;
};

}  // namespace tutti::emulation
