// How long the slots of links are, and how many a link has: every such number, and why it is what it is. Links are made
// by them, and the plan prices by them. A protocol of GPUs may have shorter ones (device/protocol.h).
#pragma once
#include <cstddef>
#include <cstdint>

namespace tutti::slots {

// --- links between ranks of hosts ---
// docs/decisions/0006: eight, so that the sender reads the receiver's counter once in eight operations.
inline constexpr uint32_t kBytes = 64 << 10, kDepth = 8;
// Two ranks have longer rings where both have them mapped (decision 0056), on the first channel and for messages: 2
// MiB, more than a core's own cache holds, so that no line need be fetched back from the cache of the core that has
// read it.
inline constexpr uint32_t kDepthOfPair = 32;
// Over sockets twice as many as others (decision 0063): 1 MiB to one call of the system.
inline constexpr uint32_t kStreamDepthOfPair = 16;
// What needs no such slot has more room in mapped memory, where there are so many header lines, each with a short slot:
// a payload that fits into one of the two, or is lent where it lies. Ranks that share a core, or have little to say,
// change places less often for it.
inline constexpr uint32_t kLines = 64, kShortBytes = 1 << 10;
// Two ranks have more of them (decision 0058): what takes a part of a slot lies in more of the ring than a cache has
// room for before it comes to the same place again.
inline constexpr uint32_t kLinesOfPair = 256, kShortBytesOfPair = 512;

// What slots of long messages leave free: a slot with its frame (96 bytes where it is sealed) fills one packet of the
// loopback device and no second one. Such a packet carries up to 65464 bytes.
inline constexpr uint32_t kLeftFree = 256;

// Where the plan prices a pipeline that fills, or ranks that are not in step, it takes a slot to be longer than it is:
// costs::kSkew was fitted so, and the two belong together. Whether a segment of each rank fits into a slot is asked of
// kBytes.
inline constexpr uint32_t kPricedBytes = 128 << 10;

// --- links between GPUs that kernels drive ---
// As many bytes as the pool has for each: enough to make up for the hand-over, few enough for several to be under way.
inline constexpr size_t kLeastBytesOnGpu = 4 << 10, kMostBytesOnGpu = 512 << 10;
inline constexpr uint32_t kDepthOnGpu = 8;
// Priced before any communicator's pool is cut up: about the middle of the two.
inline constexpr uint32_t kPricedBytesOnGpu = 256 << 10;
// A schedule that keeps pieces in scratch buffers uses so much of its slots at most: the buffers are a slot each, for
// each channel.
inline constexpr uint32_t kScratchBytesOnGpu = 32 << 10;

// --- links between GPUs whose streams wait ---
// Each slot is a copy and two words for the driver, some ten microseconds: long ones; and as many as the deepest
// schedule needs, so that rounds overlap.
inline constexpr size_t kMostBytesInStreams = 4 << 20;
inline constexpr uint32_t kDepthInStreams = 4;
inline constexpr uint32_t kPricedBytesInStreams = 1 << 20;

}  // namespace tutti::slots
