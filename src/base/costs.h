// The cost model's numbers: every one of them, and nothing else, but for those of a protocol of GPUs, which stand in
// its row. Those of links are what the transports report of a pair of ranks; plan::ClusterModel carries them to the
// model.
//
// Measured on a virtual machine with 2 cores of an Intel Xeon (AVX-512, 2 MiB of L2 a core), Linux 6.18, 4 KiB pages,
// gcc -O3; medians of 3 rounds. Where a constant is a fit or a judgement and no measurement, it says so. Only ratios
// decide between algorithms, and most of them carry over; a profile of the machine replaces the values
// (plan/profile.h).
#pragma once
#include <cstddef>

namespace tutti::costs {

// GB/s. What a core stores of data that it has at hand: memcpy of 1 MiB, one thread (16.48).
inline constexpr double kCopyGBs = 16.5;

// GB/s. What a reduction adds to taking the data in: the read of the second source and the arithmetic, in cache
// (c = a + b over 64 KiB, one thread: 26.95 GB/s of output).
inline constexpr double kCombineGBs = 27;

// Ratio. A byte of a message that is larger than a core's cache costs this much more (memcpy of 1 MiB to that of 64
// MiB: 16.48 / 8.18 GB/s), and from here on (bytes) a message is: the L2 of the machine above, half of it the peer's
// data.
inline constexpr double kColdFactor = 2.0;
inline constexpr double kHotBytes = 1 << 20;

// --- links, judgements ---
// Latency is one slot of a few bytes from post to ready, beside what the message costs the core; bandwidth a long
// message in one direction. Over loopback TCP both are a fit to all operations but broadcasts of 2, 4 and 8 ranks on
// two cores (docs/measurements/2026-11-28-sockets.md).
struct Link {
  double latencyUs, bandwidthGBs;
  friend bool operator==(const Link&, const Link&) = default;
};
inline constexpr Link kP2p{0.3, 8.0}, kShm{0.3, 7.0}, kTcpLoopback{2.5, 5.0}, kTcpNetwork{20.0, 1.2};

// GB/s: a stream between two namespaces of one machine. What ranks of containers wait for is no narrower, whatever
// their interfaces are said to carry.
inline constexpr double kContainersGBs = 3.4;

// Ratio, a judgement. What of a network interface's rate TCP leaves to messages: of a frame of 1538 bytes, gap and
// preamble included, 1448.
inline constexpr double kNetworkShare = 0.94;

// Bytes. The message by which the candidates for a link are compared: latency + kTypicalBytes / bandwidth.
inline constexpr double kTypicalBytes = 64 << 10;

// --- operations on a host ---
// Microseconds. What one more message costs through mapped memory: moving one cache line between two cores
// (50 to 60 ns a line for messages of 1 to 8 KiB).
inline constexpr double kMappedMessageUs = 0.06;

// Bytes. What is longer is stored once for several links (engine::Lane::takeShared).
inline constexpr double kLeastShared = 4 << 10;

// Microseconds, a fit and a judgement, together with kTcpLoopback. What one more message costs through the kernel. Half
// of an exchange by busy polling over loopback is 1.6 to 3.1.
inline constexpr double kNetworkMessageUs = 3.5;

// Microseconds, a judgement. What a round costs that ranks wait for before the next, beyond those that links have slots
// for, where they take turns on their cores, or are woken by the kernel: little as long as nobody else wants the cores
// (15 to 20 over loopback TCP), and 800 where threads compute on them (docs/measurements/2026-11-28-sockets.md).
inline constexpr double kRoundUs = 25;

// Ratio, a fit. What messages that follow one another cost along a row of ranks that share cores: who has its turn
// reads what has gathered, and passes it on, by few calls of the system. Broadcasts of 8 bytes over loopback TCP on two
// cores: 8 ranks 8.4 along the row, 17.6 to 29 otherwise; 4 ranks 4.4 and 10.6.
inline constexpr double kGathered = 0.5;

// Bytes. Over memory, a broadcast that is no longer is passed on several at a time by ranks that share cores: 1 KiB
// among eight on two takes 0.52 us along the row and 0.95 from the root to each, with the cores apart 0.97 and 2.75; 8
// KiB are alike, and 64 KiB take a quarter longer along the row.
inline constexpr size_t kMostPassed = 8 << 10;

// Microseconds. From this latency on a link is taken for one through the kernel or a card. A mapped slot's hand-over
// takes 0.2 to 0.4, loopback TCP 4 and more.
inline constexpr double kNetworkLatencyUs = 2.0;

// Microseconds. A turn of the scheduler: sched_yield ping-pong of two threads on one core, one way (1.03). With k ranks
// a core, every dependent step waits for the turns of k - 1 others.
inline constexpr double kTurnUs = 1.03;

// Ratio, a fit. Part of a chunk's time that is lost to skew whenever a step waits for the step before it. Makes
// one-shot and two-shot of 2 ranks with 128 KiB slots meet near 512 KiB, as measured over shared memory (256 KiB: 100
// against 115 us; 1 MiB: 320 against 396 us unpipelined; pipelined two-shot is ahead from 4 MiB).
inline constexpr double kSkew = 0.35;

// Ratio, a judgement. Loss of bandwidth between hosts for every further peer that sends to one receiver at the same
// time (full switch queues): why rings are used for long messages over a network though their bytes are those of
// two-shot. Loopback has no such queue.
inline constexpr double kFanLoss = 0.02;

// Links, a judgement. Algorithms in which every rank has a link to every other are left out above this many links a
// rank while there is another: each link is memory (up to 0.5 MiB an end) and, over a network, a connection.
inline constexpr int kMostLinks = 128;

// --- links that are still to be made ---
// Microseconds of a core for a rank's end of a link over shared memory (all to all among 64 ranks on 2 cores, oneshot's
// first call: 2016 links in 1.38 s, docs/measurements/2026-11-25-set-up.md).
inline constexpr double kLinkSetUpUs = 500;

// Microseconds, a judgement. A first call that takes no longer for its links is not noticed.
inline constexpr double kUnnoticedSetUpUs = 20e3;

// Calls, a judgement: among so many of the same kind is shared out what the first one takes beyond that.
inline constexpr double kCallsToCome = 1000;

// --- GPUs (and device/protocol.h) ---
// Microseconds. The launch of a kernel, which every choice pays.
inline constexpr double kDeviceLaunchUs = 4;

// Operations that wait in streams, judgements: microseconds from a stream's write of a word to what another stream does
// after it, of each further copy, and GB/s of one copy engine.
inline constexpr double kStreamedHopUs = 10, kStreamedCopyUs = 2, kStreamedGBs = 150;

}  // namespace tutti::costs
