#include "link/edge_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>

#include "base/error.h"

namespace tutti::link {
namespace {

static_assert(sizeof(Doorbell) <= kBellFileBytes);

constexpr size_t kAlignment = alignof(SlotHeader);

size_t oneDirection(const Edge& edge) {
  if (edge.slotBytes == 0 || !std::has_single_bit(edge.depth))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a link needs slots of at least one byte and a depth that is a power of two, not {} slots "
                            "of {} bytes",
                            edge.depth, edge.slotBytes));
  return (Fifo::bytesFor(edge.slotBytes, edge.depth) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

size_t edgeMemoryBytes(const Edge& edge) { return 2 * oneDirection(edge); }

void connectOver(Connection& connection, const Edge& edge, std::byte* memory, Doorbell* peerBell) {
  const Fifo upward = Fifo::over(memory, edge.slotBytes, edge.depth);
  const Fifo downward = Fifo::over(memory + oneDirection(edge), edge.slotBytes, edge.depth);
  const bool lower = edge.self < edge.peer;
  connection.send.fifo = lower ? upward : downward;
  connection.recv.fifo = lower ? downward : upward;
  connection.memory = {memory, edgeMemoryBytes(edge)};
  connection.send.peer = connection.recv.peer = edge.peer;
  connection.send.peerBell = connection.recv.peerBell = peerBell;
}

UniqueMap mapPrivate(size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw systemError(fmt::format("cannot get {} bytes of memory for a link", bytes), errno);
  return UniqueMap(data, bytes);
}

UniqueMap mapBell(int fd) { return mapSealed(fd, kBellFileBytes, "the file of a peer's bell"); }

}  // namespace tutti::link
