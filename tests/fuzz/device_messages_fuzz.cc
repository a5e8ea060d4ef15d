// What hostile ranks tell of their GPUs' memory: the records and verdicts of set-up, then offers of registered buffers,
// answers, withdrawals, and descriptors beside the numbers of windows. On a GPU that is none: its memory is the host's.
// What is no such message ends the matter with an Error or a line in the log, no table is written outside of itself,
// and no descriptor stays open.
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "fuzz/descriptors.h"
#include "fuzz/hearsay.h"
#include "fuzz/socket_pair.h"
#include "gpu/peers.h"
#include "gpu/remote_buffers.h"
#include "process/pass_fd.h"

namespace tutti::fuzz {
namespace {

constexpr int kMostSteps = 128, kRanks = 3;

struct HostMemory : device::DeviceMemory {
  explicit HostMemory(size_t size) : kept(size) {
    data = kept.data();
    bytes = size;
  }
  std::vector<std::byte> kept;
};

uint8_t firstOf(std::span<const std::byte> record) { return record.empty() ? 0 : static_cast<uint8_t>(record[0]); }

// A record's first byte says what this makes of it.
class NoGpu : public device::Device {
 public:
  int ordinal() const noexcept override { return 0; }
  const device::DeviceTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<device::DeviceMemory> allocate(size_t bytes) override { return std::make_unique<HostMemory>(bytes); }
  std::unique_ptr<device::DeviceMemory> allocateForUsers(size_t bytes) override { return allocate(bytes); }
  std::unique_ptr<device::DeviceMemory> allocateForPeers(size_t bytes) override {
    poolBytes_ = bytes;
    return allocate(bytes);
  }
  std::unique_ptr<link::GpuSlots> allocateForNetwork(size_t) override {
    throw Error(ErrorCode::kCuda, lackForNetwork());
  }
  std::string lackForNetwork() const override { return "no network"; }
  std::unique_ptr<device::DeviceMemory> allocatePinned(size_t bytes) override { return allocate(bytes); }
  std::unique_ptr<device::DeviceMemory> pin(std::byte*, size_t bytes) override { return allocate(bytes); }
  Bytes exportMemory(const device::DeviceMemory&) const override { return Bytes(4); }
  std::unique_ptr<device::DeviceMemory> importMemory(std::span<const std::byte> exported, bool) override {
    if (firstOf(exported) % 4 == 3) throw Error(ErrorCode::kRemote, "a record that is none");
    return allocate(firstOf(exported) % 4 == 2 ? 16 : poolBytes_);
  }
  bool goesToOtherHosts(std::span<const std::byte> exported) const override { return firstOf(exported) % 2 == 0; }
  device::BufferOffer offerBuffer(const std::byte*, size_t bytes) override {
    device::BufferOffer offer{Bytes(4), {}};
    if (bytes % 2 != 0) offer.descriptor = UniqueFd(::dup(STDERR_FILENO));
    return offer;
  }
  std::unique_ptr<device::DeviceMemory> acceptBuffer(std::span<const std::byte> record, const UniqueFd&) override {
    if (firstOf(record) % 2 != 0) throw Error(ErrorCode::kRemote, "a record that is none");
    return allocate(64);
  }
  bool opensTo(const std::byte*, int) override { return true; }
  std::vector<device::GpuLinkType> jointsTo(std::span<const Bytes> exported, std::string&) const override {
    return std::vector<device::GpuLinkType>(exported.size(), device::GpuLinkType::kNvlink);
  }
  bool reach(int, std::string&) override { return true; }
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void writePattern(std::byte* to, size_t bytes, uint64_t) override { std::memset(to, 1, bytes); }
  bool checkPattern(const std::byte*, size_t, uint64_t) override { return true; }
  uint32_t freeBlocks() const noexcept override { return 0; }
  void reserve(uint32_t) override {}
  void giveBack(uint32_t) noexcept override {}
  std::unique_ptr<device::LaunchOrder> newOrder() override { return nullptr; }
  void launch(const device::KernelLaunch&, uint32_t, std::span<const device::DeviceStream>,
              std::span<device::LaunchOrder* const>) override {}
  bool streamsWait(std::string&) noexcept override { return false; }
  std::unique_ptr<device::SideQueue> newSideQueue() override { return nullptr; }
  void beside(std::span<device::SideQueue* const>, std::span<const device::DeviceStream>,
              std::span<device::LaunchOrder* const>, const std::function<void()>&) override {}
  uint64_t readWord(const uint64_t* word) override { return *word; }
  void writeWords(std::span<const device::WordOp>) override {}
  bool captures(device::DeviceStream) override { return false; }
  void drain(device::LaunchOrder&) override {}
  bool finished(device::LaunchOrder&) noexcept override { return true; }

 private:
  device::DeviceTraits traits_;
  size_t poolBytes_ = 0;
};

// The others' words about memory.
class Neighbourhood : public Hearsay {
 public:
  explicit Neighbourhood(Input& in) : Hearsay(7, kRanks), in_(in) {}

  std::vector<Bytes> allGather(std::span<const std::byte> mine, Deadline deadline) override {
    std::vector<Bytes> all = Hearsay::allGather(mine, deadline);
    for (int rank = 1; rank < kRanks; ++rank) bend(all[static_cast<size_t>(rank)]);
    return all;
  }
  std::optional<Bytes> poll(int from, uint64_t) override {
    auto& waiting = mail_[from];
    if (waiting.empty()) return std::nullopt;
    Bytes first = std::move(waiting.front());
    waiting.pop_front();
    return first;
  }
  std::optional<SecureSocket> pollStream(int peer, uint64_t) override {
    SocketPair& pair = streams_[peer];
    if (!pair.ours) return std::nullopt;
    return SecureSocket{std::move(pair.ours), std::nullopt};
  }

  void say(int from, Bytes message) { mail_[from].push_back(std::move(message)); }
  SocketPair& stream(int peer) { return streams_[peer]; }

 private:
  // As it would be, with a byte changed, or anything.
  void bend(Bytes& told) {
    const auto how = in_.take<uint8_t>();
    if (how % 4 == 3) {
      const auto bytes = in_.bytes(in_.take<uint8_t>());
      told.assign(bytes.begin(), bytes.end());
    } else if (how % 4 == 2 && !told.empty()) {
      const auto place = in_.take<uint8_t>(), change = in_.take<uint8_t>();
      told[place % told.size()] ^= std::byte{change};
    }
  }

  Input& in_;
  std::map<int, std::deque<Bytes>> mail_;
  std::map<int, SocketPair> streams_;
};

std::vector<topology::PeerInfo> cardsOf() {
  std::vector<topology::PeerInfo> infos(kRanks);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    infos[rank].device = 0;
    infos[rank].gpu = rank;
    infos[rank].processToken = rank;
  }
  return infos;
}

gpu::GpuLayout layoutOf() {
  gpu::GpuLayout shape;
  shape.size = kRanks;
  shape.depth = 2;
  shape.slotBytes.fill(4096);
  return shape;
}

void step(Neighbourhood& plane, gpu::RemoteBuffers& windows, Input& in) {
  static std::byte buffers[256];
  const auto what = in.take<uint8_t>();
  const int peer = 1 + what / 8 % (kRanks - 1);
  const auto& handle = buffers[what / 8];
  switch (what % 8) {
    case 0: {
      const uint8_t say = in.take<uint8_t>() % 6;
      Writer message;
      message.value(say).value<uint16_t>(in.take<uint8_t>());
      if (say == 0) message.value<uint8_t>(in.take<uint8_t>() % 2).block(in.bytes(in.take<uint8_t>() % 8));
      return plane.say(peer, message.take());
    }
    case 1: {
      const auto bytes = in.bytes(in.take<uint8_t>() % 16);
      return plane.say(peer, {bytes.begin(), bytes.end()});
    }
    case 2: {
      const auto window = in.take<uint8_t>();
      const auto count = in.take<uint8_t>() % 4;
      const std::vector<int> files(count, STDERR_FILENO);
      const uint16_t number = window;
      sendWithFds(plane.stream(peer).theirs.get(), std::as_bytes(std::span(&number, 1)), files);
      return;
    }
    case 3:
      return plane.stream(peer).write(in.bytes(in.take<uint8_t>() % 4));
    case 4:
      return windows.add(&handle, {&handle, in.take<uint8_t>()});
    case 5:
      return windows.remove(&handle);
    case 6:
      (void)windows.share({&handle, 1}, what >= 128);
      return;
    default:
      windows.look(what < 128);
  }
}

void run(Input in) {
  Neighbourhood plane(in);
  NoGpu device;
  const auto infos = cardsOf();
  try {
    const gpu::DevicePeers peers(plane, device, infos, layoutOf(), Deadline::never());
    for (int rank = 1; rank < kRanks; ++rank) require(peers.direct(rank) != device::Direct::kHere);
    gpu::RemoteBuffers windows(plane, device, peers, infos);
    for (int steps = 0; !in.empty() && steps < kMostSteps; ++steps) step(plane, windows, in);
    windows.look(true);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kRemote || error.code() == ErrorCode::kSystem);
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tutti::fuzz::leavingNoneOpen(tutti::fuzz::run, data, size);
}
