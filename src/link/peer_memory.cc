#include "link/peer_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/random.h"

namespace tutti::link {

Mark::Mark() : value_{randomNumber(), randomNumber()} {
  void* const page = ::mmap(nullptr, sizeof value_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw systemError("cannot get a page of memory for a link", errno);
  page_ = UniqueMap(page, sizeof value_);
  if (::madvise(page_.data(), page_.bytes(), MADV_WIPEONFORK) != 0)
    throw systemError("cannot keep a page from children (madvise)", errno);
  std::memcpy(page_.data(), value_.data(), sizeof value_);
}

bool isReadable(const std::byte* begin, size_t bytes) noexcept {
  if (bytes == 0) return true;
  std::array<std::byte, 2> ends;
  const iovec here{ends.data(), ends.size()};
  const iovec there[] = {{const_cast<std::byte*>(begin), 1}, {const_cast<std::byte*>(begin + (bytes - 1)), 1}};
  return ::process_vm_readv(::getpid(), &here, 1, there, 2, 0) == 2;
}

bool KnownReadable::is(const std::byte* begin, size_t bytes) noexcept {
  if (begin == begin_ && bytes == bytes_ && bytes <= kMostBytes) return true;
  if (!isReadable(begin, bytes)) return false;
  begin_ = begin, bytes_ = bytes;
  return true;
}

std::unique_ptr<PeerMemory> PeerMemory::of(int pid, const MarkNote& mark, std::string& why) {
  std::unique_ptr<PeerMemory> peer(new PeerMemory(pid, mark));
  if (peer->read(nullptr, 0, 0)) return peer;
  why = peer->error();
  return nullptr;
}

bool PeerMemory::read(void* to, uint64_t at, size_t bytes) noexcept {
  std::array<uint64_t, 2> found{};
  const iovec here[] = {{to, bytes}, {found.data(), sizeof found}};
  const iovec there[] = {{reinterpret_cast<void*>(at), bytes}, {reinterpret_cast<void*>(mark_.at), sizeof found}};
  const size_t first = bytes == 0 ? 1 : 0;
  const ssize_t got = ::process_vm_readv(pid_, here + first, 2 - first, there + first, 2 - first, 0);
  error_ = got < 0 ? errno : got != static_cast<ssize_t>(bytes + sizeof found) ? EFAULT : 0;
  return error_ == 0 && found == mark_.value;
}

std::string PeerMemory::error() const {
  if (error_ == EPERM)
    return fmt::format(
        "process {} may not be read (process_vm_readv: {}): kernel.yama.ptrace_scope, a container's seccomp "
        "profile or another user are the usual reasons",
        pid_, std::strerror(error_));
  if (error_ != 0)
    return fmt::format("process {} cannot be read (process_vm_readv: {}; TUTTI_SINGLE_COPY=0 does without)", pid_,
                       std::strerror(error_));
  return fmt::format("process {} is not the peer", pid_);
}

}  // namespace tutti::link
