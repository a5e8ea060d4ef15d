#include "gpu/remote_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "process/log.h"
#include "process/pass_fd.h"
#include "team/mail_key.h"

namespace tutti::gpu {
namespace {

constexpr uint64_t kMailbox = comm::MailKey::windows().mailbox(), kStream = comm::MailKey::windows().stream(1);

Bytes saying(uint8_t what, uint16_t window) { return Writer().value(what).value(window).take(); }

// Apart from all that else may go wrong between two ranks: one that leaves in good order also closes its stream.
class Untrue : public Error {
 public:
  Untrue(int peer, const std::string& what) : Error(ErrorCode::kRemote, what), peer_(peer) {}
  int peer() const noexcept { return peer_; }

 private:
  int peer_;
};

}  // namespace

RemoteBuffers::RemoteBuffers(control::Plane& plane, device::Device& device, const DevicePeers& peers,
                             std::span<const topology::PeerInfo> infos)
    : plane_(plane), device_(device) {
  const topology::PeerInfo& own = infos[static_cast<size_t>(plane.rank())];
  for (int rank = 0; rank < plane.size(); ++rank) {
    const topology::PeerInfo& info = infos[static_cast<size_t>(rank)];
    const device::Direct direct = peers.direct(rank);
    if (direct == device::Direct::kHere && info.gpu != own.gpu) gpusHere_.insert(info.device);
    if (direct != device::Direct::kMapped) continue;
    severalHosts_ = severalHosts_ || info.hostId != own.hostId;
    peers_.emplace_back().rank = rank;
  }
  if (!peers_.empty()) table_ = device.allocate(infos.size() * device::kWindows * sizeof(device::MappedWindow));
}

void RemoteBuffers::add(const void* handle, const comm::Range& buffer) {
  const uint16_t window = peers_.empty() ? uint16_t{0} : offer(buffer);
  buffers_.push_back({handle, buffer, opensHere(buffer), window, false});
}

bool RemoteBuffers::opensHere(const comm::Range& buffer) const {
  return std::ranges::all_of(gpusHere_, [&](int gpu) { return device_.opensTo(buffer.begin, gpu); });
}

void RemoteBuffers::remove(const void* handle) {
  const auto found = std::ranges::find(buffers_, handle, &Buffer::handle);
  if (found == buffers_.end()) return;
  // A graph may be replayed at any time, so its windows stay as long as the communicator.
  if (found->window != 0 && !found->inGraph) withdraw(found->window);
  buffers_.erase(found);
}

device::Shared RemoteBuffers::share(const comm::Range& part, bool inGraph) {
  device::Shared shared;
  if (buffers_.empty() || part.begin == nullptr) return shared;
  const std::lock_guard lock(mutex_);
  for (Buffer& buffer : buffers_) {
    if (!buffer.range.holds(part)) continue;
    shared.here = shared.here || buffer.here;
    if (shared.window != 0 || !isOpen(buffer.window)) continue;
    shared.window = buffer.window;
    shared.offset = static_cast<size_t>(part.begin - buffer.range.begin);
    buffer.inGraph = buffer.inGraph || inGraph;
  }
  return shared;
}

// --- this rank's windows ---

uint16_t RemoteBuffers::freeWindow() const noexcept {
  for (uint16_t window = 1; window < device::kWindows; ++window)
    if (!windows_[window].taken) return window;
  return 0;
}

bool RemoteBuffers::isOpen(uint16_t window) const noexcept {
  const Window& of = windows_[window];
  return window != 0 && of.taken && of.answersOwed == 0 && !of.refused;
}

uint16_t RemoteBuffers::offer(const comm::Range& buffer) try {
  device::BufferOffer offered = device_.offerBuffer(buffer.begin, buffer.bytes);
  const bool needsDescriptor = static_cast<bool>(offered.descriptor);
  if (needsDescriptor && severalHosts_)
    throw Error(ErrorCode::kCuda, "its memory can not be mapped on other hosts, and some ranks are there");
  const std::lock_guard lock(mutex_);
  const uint16_t window = freeWindow();
  if (window == 0)
    throw Error(ErrorCode::kCuda, fmt::format("{} registered buffers are mapped already", device::kWindows - 1));
  const Bytes message = Writer().value(Say::kOffer).value(window).value(needsDescriptor).block(offered.record).take();
  // Until all have been told it is as one that was refused: should that fail half-way, for lack of memory, it never
  // opens, and those who have been told of it are not told of another one under its number.
  Window& of = windows_[window];
  of.taken = of.refused = true;
  of.descriptor = std::move(offered.descriptor);
  for (Peer& peer : peers_) {
    post(peer, message, needsDescriptor ? std::optional(window) : std::nullopt);
    ++peer.owes[window];
    ++of.answersOwed;
    if (needsDescriptor) requestStream(peer);
  }
  of.refused = false;
  return window;
} catch (const Error& error) {
  log::info("a registered buffer of {} bytes is not used in place by ranks of other processes: {}", buffer.bytes,
            error.what());
  return 0;
}

// Both or neither, also where memory is short: descriptors follow the offers in their order.
void RemoteBuffers::post(Peer& peer, const Bytes& offer, std::optional<uint16_t> descriptorOf) {
  if (descriptorOf) peer.toSend.push_back(*descriptorOf);
  try {
    plane_.post(peer.rank, kMailbox, offer);
  } catch (const std::exception&) {
    if (descriptorOf) peer.toSend.pop_back();
    throw;
  }
}

void RemoteBuffers::withdraw(uint16_t window) {
  const std::lock_guard lock(mutex_);
  // A second try, after memory was short, tells nobody twice; the number is never given out again then.
  if (std::exchange(windows_[window].withdrawn, true)) return;
  windows_[window].answersOwed += peers_.size();
  for (Peer& peer : peers_) {
    tell(peer, Say::kWithdrawn, window);
    ++peer.owes[window];
  }
}

// Nobody answers for another: a window is open only when all have mapped it.
void RemoteBuffers::hearAnswer(Peer& peer, Say what, uint16_t window) {
  if (peer.owes[window] == 0)
    throw Error(ErrorCode::kRemote, fmt::format("it answers about the buffer {}, of which it was not asked", window));
  // Nor does anybody before its descriptor has been passed, which goes when all have answered.
  if (std::ranges::count(peer.toSend, window) != 0)
    throw Error(ErrorCode::kRemote,
                fmt::format("it answers about the buffer {}, whose descriptor it has not been given", window));
  --peer.owes[window];
  Window& of = windows_[window];
  of.refused = of.refused || what == Say::kRefused;
  if (--of.answersOwed != 0) return;
  of.descriptor.reset();
  if (of.withdrawn) of = {};
}

// --- those of the peers ---

std::optional<RemoteBuffers::Lie> RemoteBuffers::look(bool idle) noexcept {
  if (peers_.empty()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (ended_) return std::nullopt;
  try {
    for (Peer& peer : peers_) lookAt(peer, idle);
  } catch (const Untrue& untrue) {
    ended_ = true;
    Lie lie{untrue.peer(), {}};
    setText(lie.what, untrue.what());
    return lie;
  } catch (
      const std::exception& error) {  // the communicator has failed, or there is no stream; data goes through slots
    ended_ = true;
    log::info("registered buffers are not mapped any more: {}", error.what());
  }
  return std::nullopt;
}

void RemoteBuffers::lookAt(Peer& peer, bool idle) {
  while (const auto message = plane_.poll(peer.rank, kMailbox)) hear(peer, *message);
  passDescriptors(peer);
  if (idle) unmap(peer);
}

void RemoteBuffers::tell(const Peer& peer, Say what, uint16_t window) const {
  plane_.post(peer.rank, kMailbox, saying(static_cast<uint8_t>(what), window));
}

void RemoteBuffers::hear(Peer& peer, std::span<const std::byte> message) try {
  Reader in(message);
  const auto what = in.oneOf(Say::kOffer, Say::kGone);
  const auto window = in.value<uint16_t>();
  if (window == 0 || window >= device::kWindows)
    throw Error(ErrorCode::kRemote, fmt::format("it speaks of the buffer {}, of {}", window, device::kWindows - 1));
  if (what == Say::kOffer) {
    const bool needsDescriptor = in.value<bool>();
    const auto record = in.block();
    hearOffer(peer, {window, {record.begin(), record.end()}}, needsDescriptor);
  } else if (what == Say::kWithdrawn) {
    hearWithdrawal(peer, window);
  } else {
    hearAnswer(peer, what, window);
  }
} catch (const Error& error) {
  if (error.code() == ErrorCode::kRemote) throw Untrue(peer.rank, error.what());
  throw;
}

// A number is given out again only when this rank has let go of what had it: kernels may be there until then.
void RemoteBuffers::hearOffer(Peer& peer, Offer offer, bool needsDescriptor) {
  if (peer.offered[offer.window])
    throw Error(ErrorCode::kRemote, fmt::format("it offers its buffer {} twice", offer.window));
  peer.offered.set(offer.window);
  if (!needsDescriptor) return map(peer, offer, {});
  peer.toMap.push_back(std::move(offer));
  requestStream(peer);
}

void RemoteBuffers::hearWithdrawal(Peer& peer, uint16_t window) {
  if (!peer.offered[window] || std::ranges::count(peer.leaving, window) != 0)
    throw Error(ErrorCode::kRemote, fmt::format("it withdraws its buffer {}, which is not there", window));
  peer.leaving.push_back(window);
}

// Both ends ask for it, each when it first has to do with a descriptor.
void RemoteBuffers::requestStream(Peer& peer) {
  if (peer.askedForStream) return;
  plane_.requestStream(peer.rank, kStream, control::StreamKind::kUnix);
  peer.askedForStream = true;
}

// Beside each descriptor goes the number of its window; they come in the order of their offers.
void RemoteBuffers::passDescriptors(Peer& peer) {
  if (peer.toSend.empty() && peer.toMap.empty()) return;
  if (!peer.stream) peer.stream = plane_.pollStream(peer.rank, kStream);
  if (!peer.stream) return;
  while (!peer.toSend.empty()) {
    const uint16_t window = peer.toSend.front();
    const int descriptor = windows_[window].descriptor.get();
    if (sendWithFds(peer.stream->fd.get(), std::as_bytes(std::span(&window, 1)), {&descriptor, 1}) == 0) break;
    peer.toSend.pop_front();
  }
  takeDescriptors(peer);
}

void RemoteBuffers::takeDescriptors(Peer& peer) {
  while (!peer.toMap.empty()) {
    uint16_t window = 0;
    std::vector<UniqueFd> came;
    const size_t bytes = receiveWithFds(peer.stream->fd.get(), std::as_writable_bytes(std::span(&window, 1)), 1, came);
    if (bytes == 0) break;
    if (bytes != sizeof window || came.empty() || window != peer.toMap.front().window)
      throw Untrue(peer.rank, "it passed no descriptor of the buffer that it had offered");
    map(peer, peer.toMap.front(), came.front());
    peer.toMap.pop_front();
  }
}

// Whoever is told that it is mapped may name it from then on, so the table comes first.
void RemoteBuffers::map(Peer& peer, const Offer& offer, const UniqueFd& descriptor) {
  Say answer = Say::kRefused;
  try {
    auto memory = device_.acceptBuffer(offer.record, descriptor);
    tellKernels(peer, offer.window, {reinterpret_cast<uint64_t>(memory->data), memory->bytes});
    peer.mapped[offer.window] = std::move(memory);
    answer = Say::kTaken;
  } catch (const std::exception& error) {
    log::info("a registered buffer of rank {} is not used in place: {}", peer.rank, error.what());
  }
  tell(peer, answer, offer.window);
}

void RemoteBuffers::tellKernels(const Peer& peer, uint16_t window, const device::MappedWindow& is) {
  const size_t at = static_cast<size_t>(peer.rank) * device::kWindows + window;
  device_.copy(table_->data + at * sizeof is, &is, sizeof is);
}

void RemoteBuffers::unmap(Peer& peer) {
  std::erase_if(peer.leaving, [&](uint16_t window) {
    if (std::ranges::count(peer.toMap, window, &Offer::window) != 0) return false;  // its descriptor is still to come
    if (peer.mapped[window]) tellKernels(peer, window, {});
    peer.mapped[window].reset();
    peer.offered.reset(window);
    tell(peer, Say::kGone, window);
    return true;
  });
}

}  // namespace tutti::gpu
