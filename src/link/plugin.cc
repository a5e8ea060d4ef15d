#include "link/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include <tutti/transport.h>

#include "base/error.h"
#include "base/plain_text.h"
#include "link/edge_memory.h"
#include "process/log.h"
#include "window/lasting_memory.h"

namespace tutti::link {
namespace {

static_assert(sizeof(tuttiSlotHeader) == sizeof(SlotHeader));
static_assert(offsetof(tuttiSlotHeader, fingerprint) == offsetof(SlotHeader, fingerprint));
static_assert(offsetof(tuttiSlotHeader, bytes) == offsetof(SlotHeader, bytes));
static_assert(offsetof(tuttiSlotHeader, carried) == offsetof(SlotHeader, carried));
static_assert(offsetof(tuttiSlotHeader, inlined) == offsetof(SlotHeader, inlined));
static_assert(TUTTI_INLINE_BYTES == kInlineBytes);
static_assert(TUTTI_LENT == static_cast<uint32_t>(PayloadLocation::kAtSender));
static_assert(static_cast<uint32_t>(PayloadLocation::kInSlot) == 0 && offsetof(RemoteAddress, at) == 0);
static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));

constexpr size_t kMostText = 1024;

// Room for a text of a plugin's, which may have forgotten its end.
class Text {
 public:
  char* data() noexcept { return room_.data(); }
  size_t room() const noexcept { return room_.size() - 1; }
  std::string said() const {
    const std::string text = plainText(room_.data(), kMostText);
    return text.empty() ? "no reason is given" : text;
  }

 private:
  std::array<char, kMostText> room_{};
};

void logFor(int level, const char* text) noexcept {
  try {
    const std::string line = plainText(text, kMostText);
    if (level <= 0) return log::warn("{}", line);
    level == 1 ? log::info("{}", line) : log::debug("{}", line);
  } catch (const std::exception&) {  // no memory to say it
  }
}

constexpr tuttiTransportHost kHost{TUTTI_TRANSPORT_ABI, logFor};

tuttiTransportRank rankOf(int rank, const topology::PeerInfo& info) noexcept {
  return {rank, info.pid, info.hostId, info.processToken, info.numaNode, info.device, info.hostName.c_str()};
}

tuttiFifo fifoOf(const Fifo& fifo) noexcept {
  return {reinterpret_cast<unsigned char*>(fifo.slots), reinterpret_cast<tuttiSlotHeader*>(fifo.headers),
          reinterpret_cast<uint64_t*>(&fifo.released->value), fifo.slotBytes, fifo.depth};
}

// Names and values in turn, as the header has them.
class SettingsList {
 public:
  explicit SettingsList(const TransportSettings& settings) : values_(settings.values) {
    for (const auto& [name, value] : values_) pointers_.insert(pointers_.end(), {name.c_str(), value.c_str()});
    pointers_.push_back(nullptr);
  }
  SettingsList(const SettingsList&) = delete;
  SettingsList& operator=(const SettingsList&) = delete;
  tuttiTransportSettings list() const noexcept { return pointers_.data(); }

 private:
  const std::map<std::string, std::string> values_;
  std::vector<const char*> pointers_;
};

tuttiTransportMemory memoryOf(const window::Lasting& memory) noexcept {
  return {memory.begin, memory.bytes, memory.number};
}

int flushOf(void* slots) noexcept { return static_cast<GpuSlots*>(slots)->flush() ? 0 : -1; }

tuttiTransportGpuSlots described(GpuSlots* slots) noexcept {
  if (slots == nullptr) return {nullptr, 0, -1, 0, nullptr, nullptr};
  return {
      slots->data(), slots->bytes(), slots->dmabuf(), slots->dmabufOffset(), slots->needsFlush() ? flushOf : nullptr,
      slots};
}

void forgetIn(const void* table, const window::Lasting& memory) noexcept {
  const tuttiTransportMemory described = memoryOf(memory);
  static_cast<const tuttiTransport*>(table)->forget(&described);
}

class PluginDriver final : public Driver {
 public:
  PluginDriver(const tuttiTransport& table, void* handle, const Fifo& send, const Fifo& recv)
      : table_(table), handle_(handle), send_(send), recv_(recv) {}
  ~PluginDriver() override { table_.close(handle_); }
  PluginDriver(const PluginDriver&) = delete;
  PluginDriver& operator=(const PluginDriver&) = delete;

  Progress progress() noexcept override {
    if (!failed_) {
      const tuttiTransportProgress moved = table_.progress(handle_);
      failed_ = moved != tuttiTransportIdle && moved != tuttiTransportAdvanced;
      if (!failed_) return moved == tuttiTransportAdvanced ? Progress::kAdvanced : Progress::kIdle;
    }
    return hasUnread() && !hasUnsent() ? Progress::kIdle : Progress::kFailed;
  }
  bool holdsBuffers() const noexcept override { return table_.hold != nullptr; }
  bool beginHolding(const window::Lasting& memory) noexcept override {
    const tuttiTransportMemory described = memoryOf(memory);
    return !failed_ && table_.hold(handle_, &described) != 0;
  }
  void endHolding(const window::Lasting& memory) noexcept override {
    const tuttiTransportMemory described = memoryOf(memory);
    table_.letGo(handle_, &described);
  }
  void stopSendingBuffers() noexcept override {
    if (holdsBuffers()) table_.takeBack(handle_);
  }
  bool sending() const noexcept override { return !failed_ && table_.sending(handle_) != 0; }
  // Nothing moves after a failure.
  Interest wanted() noexcept override {
    Interest now{-1, 0};
    if (!failed_) now.fd = table_.interest(handle_, &now.events);
    if (now.fd < 0) now.events = 0;
    return now;
  }
  std::string error() const override {
    Text text;
    table_.error(handle_, text.data(), text.room());
    return text.said();
  }

 private:
  // What has come before the failure is still taken; then whoever waits for more hears of it.
  bool hasUnread() const noexcept { return isNext(recv_, recv_.released->value.load(std::memory_order_acquire)); }
  bool hasUnsent() const noexcept { return isNext(send_, send_.released->value.load(std::memory_order_acquire)); }
  static bool isNext(const Fifo& fifo, uint64_t slot) noexcept {
    return fifo.line(slot).sequence.load(std::memory_order_acquire) == slot + 1;
  }

  const tuttiTransport& table_;
  void* const handle_;
  const Fifo send_, recv_;
  bool failed_ = false;
};

class PluginConnection final : public Connection {
 public:
  // With `source`, its slots lie on a GPU.
  PluginConnection(const Edge& edge, const GpuSlotSource* source)
      : edge_(edge),
        slots_(source != nullptr ? source->make(slotMemoryBytes(edge)) : nullptr),
        memory_(mapPrivate(slots_ ? headMemoryBytes(edge) : edgeMemoryBytes(driven(edge)))) {
    gpuSlots = slots_.get();
    slots_ ? connectApart(*this, edge_, memory_.data(), slots_->data())
           : connectOver(*this, driven(edge_), memory_.data(), nullptr);
    memoryBytes = memory_.bytes() + (slots_ ? slots_->bytes() : 0);
  }

  tuttiTransportEdge describe(tuttiTransportSettings settings) const noexcept {
    return {rankOf(edge_.self, edge_.selfInfo),
            rankOf(edge_.peer, edge_.peerInfo),
            edge_.channel,
            fifoOf(send.fifo),
            fifoOf(recv.fifo),
            memory.data(),
            memory.size(),
            settings,
            described(slots_.get())};
  }
  void driveBy(const tuttiTransport& table, void* handle) {
    transport = slots_ ? std::string(table.name).append(kOnGpu) : table.name;
    driver_ = std::make_unique<PluginDriver>(table, handle, send.fifo, recv.fifo);  // from here on the handle's owner
    send.driver = recv.driver = driver_.get();
  }

 private:
  const Edge edge_;  // whose names the plugin has been given
  const std::unique_ptr<GpuSlots> slots_;
  UniqueMap memory_;
  std::unique_ptr<PluginDriver> driver_;  // ends before the memory that it moves
};

// What the two ends of a plugin tell each other. Its calls come from C, which no exception may cross.
class Line {
 public:
  explicit Line(OobChannel& oob) : oob_(oob) {}
  tuttiTransportLine table() noexcept { return {this, put, poll}; }
  // Throws what has failed under the calls.
  void check() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  static void put(void* line, const void* blob, size_t bytes) noexcept {
    Line& self = *static_cast<Line*>(line);
    try {
      self.oob_.put({static_cast<const std::byte*>(blob), bytes});
    } catch (...) {
      self.failure_ = std::current_exception();
    }
  }
  static int64_t poll(void* line, void* blob, size_t room) noexcept {
    Line& self = *static_cast<Line*>(line);
    try {
      const auto come = self.oob_.poll();
      if (!come) return -1;
      if (!come->empty()) std::memcpy(blob, come->data(), std::min(room, come->size()));
      return static_cast<int64_t>(come->size());
    } catch (...) {
      self.failure_ = std::current_exception();
      return -1;
    }
  }

  OobChannel& oob_;
  std::exception_ptr failure_;
};

class PluginSetup final : public Setup {
 public:
  PluginSetup(const tuttiTransport& table, const Edge& edge, OobChannel& oob, tuttiTransportSettings settings,
              const GpuSlotSource* source)
      : table_(table), line_(oob), made_(std::make_unique<PluginConnection>(edge, source)) {
    const tuttiTransportEdge described = made_->describe(settings);
    const tuttiTransportLine line = line_.table();
    Text why;
    handle_ = table.open(&described, &line, why.data(), why.room());
    if (handle_ == nullptr) throw Error(ErrorCode::kSystem, why.said());
  }
  ~PluginSetup() override {
    if (handle_ != nullptr) table_.close(handle_);
  }
  PluginSetup(const PluginSetup&) = delete;
  PluginSetup& operator=(const PluginSetup&) = delete;

  std::unique_ptr<Connection> advance() override {
    line_.check();  // what failed under open(), too
    const tuttiTransportProgress moved = table_.connect(handle_);
    line_.check();
    if (moved == tuttiTransportIdle) return nullptr;
    if (moved != tuttiTransportAdvanced) {
      Text why;
      table_.error(handle_, why.data(), why.room());
      throw Error(ErrorCode::kSystem, why.said());
    }
    made_->driveBy(table_, handle_);
    handle_ = nullptr;  // the driver's
    return std::move(made_);
  }

 private:
  const tuttiTransport& table_;
  Line line_;
  std::unique_ptr<PluginConnection> made_;
  void* handle_ = nullptr;
};

// Within a host a message goes through the device twice, out and in.
Reachability reachAt(const PluginPrice& price, const topology::PeerInfo& self, const topology::PeerInfo& peer) {
  const double share = self.hostId == peer.hostId ? 0.5 : 1;
  return {true, price.latencyUs, price.bandwidthGBs * share, ""};
}
std::string announcedAt(const PluginPrice& price) {
  return fmt::format("{:.6g} us, {:.6g} GB/s", price.latencyUs, price.bandwidthGBs);
}

class Plugin final : public Transport {
 public:
  Plugin(const tuttiTransport& table, const TransportSettings& settings) : table_(table), settings_(settings) {}
  std::string_view name() const noexcept override { return table_.name; }
  Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    return reachAt({table_.latencyUs, table_.bandwidthGBs}, self, peer);
  }
  std::string announced() const override { return announcedAt({table_.latencyUs, table_.bandwidthGBs}); }
  std::string lack(const topology::PeerInfo& self) const override {
    const tuttiTransportRank rank = rankOf(-1, self);
    Text why;
    return table_.usable(&rank, settings_.list(), why.data(), why.room()) != 0 ? "" : why.said();
  }
  bool reachesGpus() const noexcept override { return table_.reachesGpu != nullptr; }
  bool keepsSecrets() const noexcept override { return false; }
  std::unique_ptr<Setup> open(const Edge& edge, OobChannel& oob) override {
    return std::make_unique<PluginSetup>(table_, edge, oob, settings_.list(), nullptr);
  }

 private:
  const tuttiTransport& table_;
  const SettingsList settings_;
};

// The same with the slots of its links on this rank's GPU, and on the peer's.
class PluginOnGpu final : public Transport {
 public:
  PluginOnGpu(const tuttiTransport& table, const TransportSettings& settings)
      : table_(table),
        settings_(settings),
        name_(std::string(table.name).append(kOnGpu)),
        price_(priceOnGpu({table.latencyUs, table.bandwidthGBs})),
        source_(settings.gpuSlots) {}
  std::string_view name() const noexcept override { return name_; }
  Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    return reachAt(price_, self, peer);
  }
  std::string announced() const override { return announcedAt(price_); }
  std::string lack(const topology::PeerInfo& self) const override {
    const tuttiTransportRank rank = rankOf(-1, self);
    Text why;
    for (const auto& ask : {table_.usable, table_.reachesGpu})
      if (ask(&rank, settings_.list(), why.data(), why.room()) == 0) return why.said();
    return source_->lack();
  }
  bool keepsSecrets() const noexcept override { return false; }
  std::unique_ptr<Setup> open(const Edge& edge, OobChannel& oob) override {
    return std::make_unique<PluginSetup>(table_, edge, oob, settings_.list(), source_.get());
  }

 private:
  const tuttiTransport& table_;
  const SettingsList settings_;
  const std::string name_;
  const PluginPrice price_;
  const std::shared_ptr<const GpuSlotSource> source_;
};

// Between two others it is what it is to them.
class Absent final : public Transport {
 public:
  Absent(std::string name, PluginPrice price, std::string why)
      : name_(std::move(name)), price_(price), why_(std::move(why)) {}
  std::string_view name() const noexcept override { return name_; }
  Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    return reachAt(price_, self, peer);
  }
  std::string announced() const override { return announcedAt(price_); }
  std::string lack(const topology::PeerInfo&) const override { return why_; }
  bool reachesGpus() const noexcept override { return true; }
  std::unique_ptr<Setup> open(const Edge&, OobChannel&) override { throw Error(ErrorCode::kSystem, why_); }

 private:
  const std::string name_;
  const PluginPrice price_;
  const std::string why_;
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("the transport in {} cannot be used: {}", path, why));
}

void check(const tuttiTransport& table, const std::string& path) {
  if (table.abi != TUTTI_TRANSPORT_ABI)
    refuse(path, fmt::format("it is made for interface {}, this library has {}", table.abi, TUTTI_TRANSPORT_ABI));
  const std::string_view name = table.name != nullptr ? table.name : "";
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  constexpr size_t kMostName = 32;
  if (name.empty() || name.size() > kMostName || !std::ranges::all_of(name, plain))
    refuse(path, fmt::format("'{}' is no name: up to {} lower-case letters and digits", plainText(name, 2 * kMostName),
                             kMostName));
  if (!(table.latencyUs >= 0 && table.latencyUs < 1e9) || !(table.bandwidthGBs >= 1e-6 && table.bandwidthGBs < 1e9))
    refuse(path, fmt::format("{} announces a latency of {} us and a bandwidth of {} GB/s", name, table.latencyUs,
                             table.bandwidthGBs));
  if (!table.usable || !table.open || !table.connect || !table.progress || !table.sending || !table.interest ||
      !table.error || !table.close)
    refuse(path, fmt::format("{} lacks a function", name));
  if (const int count = !!table.hold + !!table.letGo + !!table.takeBack + !!table.forget; count != 0 && count != 4)
    refuse(path, fmt::format("{} has some of hold, letGo, takeBack and forget, but not all", name));
}

}  // namespace

std::vector<std::unique_ptr<Transport>> loadTransport(const std::string& path, const TransportSettings& settings) {
  void* const object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) {
    const char* const why = ::dlerror();
    refuse(path, why != nullptr ? why : "it cannot be opened");
  }
  auto* const entry = reinterpret_cast<tuttiTransportEntry_t*>(::dlsym(object, "tuttiTransportEntry"));
  if (entry == nullptr) refuse(path, "it has no function tuttiTransportEntry (tutti/transport.h)");
  Text why;
  const tuttiTransport* const table = entry(&kHost, why.data(), why.room());
  if (table == nullptr) refuse(path, why.said());
  check(*table, path);
  if (table->forget != nullptr) window::LastingMemory::ofProcess().tell(table, forgetIn);
  std::vector<std::unique_ptr<Transport>> all;
  if (settings.gpuSlots && table->reachesGpu != nullptr) all.push_back(std::make_unique<PluginOnGpu>(*table, settings));
  all.push_back(std::make_unique<Plugin>(*table, settings));
  return all;
}

std::unique_ptr<Transport> makeAbsent(std::string name, PluginPrice price, std::string why) {
  return std::make_unique<Absent>(std::move(name), price, std::move(why));
}

}  // namespace tutti::link
