// What a test can set about the emulation, and ask it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::emulation {

// The seed of the order in which the threads of each block run; every report says it.
void setSeed(uint64_t seed);
uint64_t seed() noexcept;

// How many devices there are (1; at most 16). Before they are used.
void setDeviceCount(int count);

// Where the devices are on the PCI bus, one after the other ("0001:00:00.0"; 0000:10:00.0, 0000:11:00.0, …). Before
// they are used.
void setBusIds(const std::vector<std::string>& ids);

// Of every device: its multiprocessors (132), and how many blocks each holds, whatever the kernel (1). A block for
// which there is no room waits for another one to end.
void setMultiprocessors(unsigned count, unsigned blocksEach);

// Whether every device says that its streams can wait for words in memory (yes).
void setStreamsWait(bool can);

// Whether the devices have virtual memory management (they do), and whether a fabric joins their processes (it does
// not, but where TUTTI_TEST_FABRIC is in the environment). Before memory is made.
enum class Sharing { kNone, kVirtual, kFabric };
void setSharing(Sharing sharing);

// Whether a device may be let in to the memory of another one of its process (it may).
void setPeerAccess(bool can);

// Whether network devices reach the devices' memory (GPUDirect), and whether these see by themselves what comes that
// way or after a flush (kFlushed, and then they have dma-bufs, too); kJoined: in order, but the host's memory they read
// another way. Before a device is used.
enum class GpuDirect { kNone, kInOrder, kFlushed, kJoined };
void setGpuDirect(GpuDirect now);
uint64_t flushes() noexcept;  // so far

// Which devices NVLink joins, and whether there is an NVML to say so (there is none), is in the environment:
// TUTTI_TEST_NVLINK (nvml/nvml.cc).

// What went wrong in a kernel: which mistake, in which kernel, block and thread. Empty when all is well.
std::string lastReport();
// Waits until the devices that failed have nothing to do, and makes them as good as new.
void clearReports();

}  // namespace tutti::emulation
