// Reading the memory of another process of this host as it lies there: process_vm_readv(2), which other libraries know
// as CMA, cross-memory attach. What is read so is copied once, where through slots it is copied twice.
//
// Whose memory a process number names is known only as long as that process lives. So each process keeps a mark, 16
// bytes that are drawn, and tells its peer where; every read fetches that mark after the data, by the same call and
// so from the same address space. Who finds it there has read what its peer meant. A peer that has died, a number that
// another process has by now, an address that is mapped no more: an error, never a fault and never other bytes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "process/fd.h"

namespace tutti::link {

// Where a process keeps its mark, and what it is. As it goes to the peer.
struct MarkNote {
  uint64_t at = 0;
  std::array<uint64_t, 2> value{};
};

// Stays where it is for as long as peers may read. A child of this process has none there, whose number may one day be
// this one's.
class Mark {
 public:
  Mark();  // throws Error(kSystem) where there is no memory
  MarkNote note() const noexcept { return {reinterpret_cast<uint64_t>(page_.data()), value_}; }

 private:
  UniqueMap page_;
  std::array<uint64_t, 2> value_;
};

// Whether others that may read this process can read that: not so of what devices and the kernel have mapped.
bool isReadable(const std::byte* begin, size_t bytes) noexcept;

// The same of a buffer that is used again and again. The kernel is asked about a short one once: its answer takes 0.6
// us, which is a part of such a call. Of what has become unreadable at the same place since then, reading it fails.
class KnownReadable {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;
  bool is(const std::byte* begin, size_t bytes) noexcept;

 private:
  const std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
};

class PeerMemory {
 public:
  // Reads the mark for a try. Null where that is not permitted, or not that process's; `why` says so then.
  static std::unique_ptr<PeerMemory> of(int pid, const MarkNote& mark, std::string& why);

  // Copies from the peer's address space into this one's. False: nothing that has been copied may be used, error()
  // says why. One thread at a time.
  bool read(void* to, uint64_t at, size_t bytes) noexcept;
  std::string error() const;

 private:
  PeerMemory(int pid, const MarkNote& mark) : pid_(pid), mark_(mark) {}
  const int pid_;
  const MarkNote mark_;
  int error_ = 0;  // 0: another process's
};

}  // namespace tutti::link
