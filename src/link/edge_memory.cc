#include "link/edge_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/error.h"

namespace tutti::link {
namespace {

static_assert(sizeof(Doorbell) <= kSharedSlotsAt);

constexpr size_t kAlignment = alignof(SlotHeader);

uint32_t depthOf(const Edge& edge) noexcept { return std::max(edge.depth, edge.mappedDepth); }
uint32_t linesOf(const Edge& edge) noexcept { return std::max(edge.lines, depthOf(edge)); }

void check(const Edge& edge) {
  if (edge.slotBytes == 0 || !std::has_single_bit(edge.depth) || !std::has_single_bit(depthOf(edge)) ||
      !std::has_single_bit(linesOf(edge)))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a link needs slots of at least one byte and a depth that is a power of two, not {} slots "
                            "of {} bytes with {} lines",
                            depthOf(edge), edge.slotBytes, linesOf(edge)));
}

size_t aligned(size_t bytes) noexcept { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Of one direction.
size_t wholeBytes(const Edge& edge) {
  return check(edge), aligned(Fifo::bytesFor(edge.slotBytes, depthOf(edge), linesOf(edge)));
}
size_t headBytes(const Edge& edge) { return check(edge), aligned(Fifo::bytesFor(0, edge.depth)); }
size_t slotsBytes(const Edge& edge) { return check(edge), aligned(size_t{edge.slotBytes} * edge.depth); }

void connect(Connection& connection, const Edge& edge, const Fifo& upward, const Fifo& downward, Doorbell* peerBell) {
  const bool lower = edge.self < edge.peer;
  connection.send.fifo = lower ? upward : downward;
  connection.recv.fifo = lower ? downward : upward;
  connection.send.peer = connection.recv.peer = edge.peer;
  connection.send.peerBell = connection.recv.peerBell = peerBell;
}

// Pages that come one by one, in the first calls, would make slots look slow where ways are compared
// (engine::LendingTrial). Where the system cannot do that, they come so all the same. Whoever writes there does it, so
// that they lie near its core, and are on its account.
void touch(const Fifo& fifo) noexcept {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE: headers are older than kernels
  constexpr size_t kPage = 4096;      // where pages are longer, nothing is done
  const auto begin = (reinterpret_cast<uintptr_t>(fifo.slots) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<uintptr_t>(fifo.slots + size_t{fifo.depth} * fifo.slotBytes);
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, kPopulateWrite);
}

}  // namespace

Edge driven(Edge edge) noexcept {
  edge.mappedDepth = 0;
  edge.lines = edge.depth;
  edge.dividesSlots = false;
  return edge;
}

size_t edgeMemoryBytes(const Edge& edge) { return 2 * wholeBytes(edge); }
size_t headMemoryBytes(const Edge& edge) { return 2 * headBytes(edge); }
size_t slotMemoryBytes(const Edge& edge) { return 2 * slotsBytes(edge); }

void connectOver(Connection& connection, const Edge& edge, std::byte* memory, Doorbell* peerBell) {
  const auto over = [&](std::byte* begin) {
    const Fifo fifo = Fifo::over(begin, edge.slotBytes, depthOf(edge), linesOf(edge));
    return edge.dividesSlots ? fifo.divided() : fifo;
  };
  connect(connection, edge, over(memory), over(memory + wholeBytes(edge)), peerBell);
  connection.memory = {memory, edgeMemoryBytes(edge)};
  if (depthOf(edge) > edge.depth) touch(connection.send.fifo);
}

void connectApart(Connection& connection, const Edge& edge, std::byte* memory, std::byte* slots) {
  const auto over = [&](std::byte* begin, std::byte* with) {
    Fifo fifo = Fifo::over(begin, edge.slotBytes, edge.depth);
    fifo.slots = with;
    return fifo;
  };
  connect(connection, edge, over(memory, slots), over(memory + headBytes(edge), slots + slotsBytes(edge)), nullptr);
  connection.memory = {memory, headMemoryBytes(edge)};
}

UniqueMap mapPrivate(size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw systemError(fmt::format("cannot get {} bytes of memory for a link", bytes), errno);
  return UniqueMap(data, bytes);
}

UniqueMap mapBell(int fd) { return mapSealed(fd, kBellFileBytes, "the file of a peer's bell"); }

}  // namespace tutti::link
