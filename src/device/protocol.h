// A protocol is how a slot on a GPU says that it is full: a row here, and what moves the data, a file of its name in
// kernels/cuda. docs/extending.md shows how to add one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/enum_table.h"
#include "base/slots.h"

namespace tutti {

//   kSimple  its header's sequence number: any link.
//   kLL      a 4-byte flag beside every 4 bytes of data: one trip, half the bandwidth.
//   kLL128   an 8-byte flag in each line of 128 bytes, which the link must move as a whole: one GPU, or NVLink.
enum class Protocol : uint8_t { kSimple, kLL, kLL128 };

// What is moved at a time, as payload and as it lies in the slot: a pack, an LL line, the four LL128 lines of a warp.
// Each piece of a slot that carries several begins at a whole grain.
struct Grain {
  uint32_t payload, bytes;
};

// Judgements, after published figures of NVLink systems and of memory bandwidth; to be replaced by measured ones.
// Microseconds from one block's store to another block's look at it, GB/s of one block, and bytes of a message for
// which one more block pays.
struct ProtocolCost {
  double hopUs, channelGBs, bytesPerChannel;
};

struct ProtocolRow {
  Protocol protocol;
  std::string_view name;  // in lower case; TUTTI_PROTOCOL takes it
  Grain grain;
  uint32_t mostSlotBytes;
  // The data says by itself that it has arrived: slots are posted before they are filled. Else the header says so when
  // all is there, and only then may a small payload be in the header, or a link be direct.
  bool dataTells;
  bool needsWholeLines;  // links that move 128 bytes as a whole
  // Where NVLink joins all GPUs; and where PCIe joins some of them, or nothing is known of what does: a store takes
  // longer to arrive, and few blocks fill the bus.
  ProtocolCost overNvlink, overPcie;
  // Of what a link carries, what is the message's: what NCCL's protocols of the same names reach of Simple's bandwidth
  // on four H100 (0.43, 0.92) and on eight A100 (0.39, 0.74), forced.
  double linkShare;
  double networkHopUs;  // from one host to another; what NCCL's tuning goes by (src/graph/tuning.cc)
};

// What tells by itself is for short messages, and has short slots.
inline constexpr ProtocolRow kProtocolRows[] = {
    {.protocol = Protocol::kSimple,
     .name = "simple",
     .grain = {16, 16},
     .mostSlotBytes = slots::kMostBytesOnGpu,
     .dataTells = false,
     .needsWholeLines = false,
     .overNvlink = {3.5, 24, 128 << 10},
     .overPcie = {6.0, 12, 512 << 10},
     .linkShare = 1,
     .networkHopUs = 14},
    {.protocol = Protocol::kLL,
     .name = "ll",
     .grain = {8, 16},
     .mostSlotBytes = 16 << 10,
     .dataTells = true,
     .needsWholeLines = false,
     .overNvlink = {1.0, 6, 8 << 10},
     .overPcie = {2.0, 3, 32 << 10},
     .linkShare = 0.4,
     .networkHopUs = 5.0},
    {.protocol = Protocol::kLL128,
     .name = "ll128",
     .grain = {480, 512},
     .mostSlotBytes = 32 << 10,
     .dataTells = true,
     .needsWholeLines = true,
     .overNvlink = {1.9, 18, 32 << 10},
     .overPcie = {3.5, 9, 128 << 10},
     .linkShare = 0.9,
     .networkHopUs = 8.5},
};
inline constexpr int kProtocols = static_cast<int>(std::size(kProtocolRows));
inline constexpr auto kEveryProtocol = firstMembers<Protocol, kProtocols>();
static_assert(areInOrder(kProtocolRows, &ProtocolRow::protocol));

// A value for each.
template <class Value>
using PerProtocol = EnumTable<Protocol, Value, kProtocols>;

constexpr const ProtocolRow& rowOf(Protocol protocol) noexcept { return kProtocolRows[static_cast<size_t>(protocol)]; }
constexpr std::string_view nameOf(Protocol protocol) noexcept { return rowOf(protocol).name; }

}  // namespace tutti
