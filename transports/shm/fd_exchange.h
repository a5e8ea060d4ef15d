// One message with descriptors in each direction over a fresh Unix stream, without ever blocking.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "link/peer_memory.h"
#include "process/fd.h"

namespace tutti::transports {

inline constexpr uint32_t kShmMagic = 0x6d687374;  // "tshm"
inline constexpr uint32_t kShmVersion = 7;

// What the two ends of an edge tell each other. Fixed size, compared field by field with what is expected.
struct ShmGreeting {
  uint32_t magic = 0, version = 0;
  uint32_t slotBytes = 0, depth = 0;
  uint64_t regionBytes = 0;  // of the memory file that comes along; 0: none
  uint32_t bells = 0;        // 1 when a bell's file comes along, after the region
  uint32_t lends = 0;        // 1 when the peer may read this end's memory, by `mark`
  link::MarkNote mark;
  uint64_t windows = 0;  // 1 when the file of its window comes along (window/own_window.h), after the bell
};

class FdExchange {
 public:
  static constexpr size_t kMaxFds = 3;

  // `fds` stay the caller's and must stay open until done().
  FdExchange(UniqueFd stream, const ShmGreeting& greeting, std::vector<int> fds)
      : stream_(std::move(stream)), out_(greeting), outFds_(std::move(fds)) {}

  // Sends and receives what can be now. True when both messages are across. Throws Error.
  bool advance();
  const ShmGreeting& greeting() const noexcept { return in_; }
  std::vector<UniqueFd>& fds() noexcept { return inFds_; }

 private:
  void send();
  void receive();

  UniqueFd stream_;
  ShmGreeting out_, in_;
  std::vector<int> outFds_;
  std::vector<UniqueFd> inFds_;
  size_t sent_ = 0, received_ = 0;
};

}  // namespace tutti::transports
