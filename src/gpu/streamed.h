// What a communicator has for operations that wait in streams (engine/streamed.h): its stream, and an eye on where that
// is, for nobody else sees a stream that waits for ever.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "engine/streamed.h"
#include "gpu/peers.h"
#include "gpu/programs.h"
#include "team/call.h"

namespace tutti::gpu {

// What a stream that stands still waits for.
struct StandingStream {
  engine::Awaited awaited;
  uint64_t position;  // changes when it goes on
};

class DeviceStreamed {
 public:
  DeviceStreamed(device::Device& device, const DevicePeers& peers, std::chrono::milliseconds timeout);

  // --- of the thread that queues ---
  device::SideQueue& queue() noexcept { return *queue_; }
  // Throws Error.
  engine::StreamedLane laneFor(const comm::Call& call, const DeviceProgram& program, uint64_t number,
                               std::byte* barrierByte);
  // Where what is queued next leaves its places. `stays`: a graph keeps it.
  engine::StreamedQueue newJournal(bool stays);

  // --- of the attendant ---
  // Whom the stream has waited for too long, or who sent what it did not expect. Throws Error.
  std::optional<device::Report> look();
  // What the stream waited for when last looked at, if it stood still. Nothing of a graph: the numbers of its calls are
  // those of its capture, and say nothing of a replay.
  std::optional<StandingStream> standing() const noexcept;
  // Lets the stream go on as if everything that it waits for had come. Call it again and again until the stream has
  // ended: what it makes is worth nothing. Throws Error.
  void letGo();
  bool atRest() const noexcept { return position() == 0; }

 private:
  engine::StreamCursor& cursor() const noexcept { return *reinterpret_cast<engine::StreamCursor*>(cursor_->data); }
  uint64_t position() const noexcept { return cursor().place(); }
  void findMissing(const std::vector<engine::Awaited>& all, std::chrono::steady_clock::time_point now);
  bool stood(std::chrono::steady_clock::time_point now) noexcept;
  void throwAwayTrails();
  std::vector<engine::Awaited> awaited(uint64_t position) const;
  std::optional<device::Report> mismatch(const engine::Awaited& awaited);

  device::Device& device_;
  const DevicePeers& peers_;
  std::chrono::steady_clock::duration timeout_;
  std::unique_ptr<device::DeviceMemory> cursor_;  // of the host
  std::unique_ptr<device::SideQueue> queue_;

  mutable std::mutex mutex_;                                           // guards what follows
  std::map<uint64_t, std::shared_ptr<engine::WaitJournal>> journals_;  // by their first positions
  std::shared_ptr<engine::WaitJournal> last_;                          // of those that are of no graph
  uint64_t graphs_ = 0;

  // Of the attendant: since when the stream has been where it is, and when its words were looked at.
  std::chrono::steady_clock::time_point since_, looked_;
  std::optional<StandingStream> standing_;
};

}  // namespace tutti::gpu
