// A link over one or several queue pairs: the state machine, which knows nothing of verbs but the port in queue.h.
//
// A posted slot is written straight into its place in the receiver's FIFO, which lies at the same distance from the
// begin of the memory at both ends: header and payload, long payloads in parts over all paths. Each part is followed by
// a note; when all parts of the next slot have come, its sequence number is stored, and it is there. What the receiver
// releases goes back as a note, too, and only then is the place written to again; the sender's own place is free as
// soon as the device says that all is over there, so that whoever has sent needs nothing more of the receiver. So no
// byte is looked at before the note behind it has come, whatever way the network takes.
//
// The slots may lie in the memory of GPUs instead, at both ends. What a device has written there the GPU sees once it
// has been told to (flush), which is done before the sequence number is stored.
//
// A payload may lie in the program's memory instead, which the devices of the link then have registered. Its slot is
// free only when no device may read it again: also not where the peer has released it, and the device has not heard so.
//
// A path that breaks is stopped at both ends. Each asks the other, on another path, what has come of what it sent that
// way; when the answer is there nothing can come that way any more, and what has not come is sent again on others. So
// no part comes twice, and none late into a place that is used again. When the port is active again, the lower rank
// revives the path, which is used once a note has crossed it. With the last path the link fails.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tutti/transport.h>

#include "transports/verbs/path.h"

namespace tutti::verbs {

inline constexpr int kMostPaths = 8;  // and parts of a slot

enum class Progress : int8_t { kFailed = -1, kIdle, kAdvanced };

class StripedLink {
 public:
  // The FIFOs lie in `memory`. `leads` at one end alone. `log` is told of paths that break and come back.
  StripedLink(const tuttiFifo& send, const tuttiFifo& recv, void* memory, bool leads,
              std::function<void(const std::string&)> log = {});
  ~StripedLink();
  StripedLink(const StripedLink&) = delete;
  StripedLink& operator=(const StripedLink&) = delete;

  // How many notes may be under way towards an end of a link of this depth, on one path, and how many writes from it.
  static int mostNotes(uint32_t depth) noexcept;
  static int mostWrites(uint32_t depth) noexcept;

  // Before begin(); the same number, in the same order, at both ends; kMostPaths at most.
  void addPath(std::unique_ptr<Queue> queue, const QueueAddress& peer);
  // The FIFOs' slots lie in a GPU: they are no part of the memory. Before begin().
  void slotsIn(const tuttiTransportGpuSlots& slots) noexcept { gpuSlots_ = slots; }
  // Connects all paths. False when one cannot be: error() says why.
  bool begin() noexcept;

  // Whether what is posted from now on may lie in this memory: true until letGo(), as often as that was said. On each
  // device of the link at most `most` bytes are registered. `why` says why not, where nobody has heard it yet.
  bool hold(const tuttiTransportMemory& memory, size_t most, std::string& why) noexcept;
  void letGo(uint64_t memory) noexcept;
  // All that was posted and is not released lies in slots by now: nothing reads it elsewhere once this returns. Paths
  // on which it is under way are broken for that, and what they had goes again.
  void takeBack(TimePoint now) noexcept;

  Progress progress(TimePoint now) noexcept;
  // While something posted, or what the peer waits for, has not reached it.
  bool sending() const noexcept;
  // Prepares for sleeping on the paths' descriptors. False when there is something to do at once.
  bool arm() noexcept;
  std::string error() const { return error_; }

  const std::vector<std::unique_ptr<Path>>& paths() const noexcept { return paths_; }
  // How often a path broke, and how often one came back.
  uint64_t broken() const noexcept { return broken_; }
  uint64_t revived() const noexcept { return revived_; }
  // Slots, and those of them whose payload never was in one here.
  uint64_t sent() const noexcept { return sent_; }
  uint64_t sentInPlace() const noexcept { return sentInPlace_; }

 private:
  // A slot that the sender has sent, until it is released.
  struct Sent {
    uint32_t bytes = 0;
    bool lent = false;            // when it was posted
    uint8_t parts = 0, done = 0;  // how many, and a mask of those that are over there
    std::array<uint8_t, kMostPaths> pathOf{};
  };
  struct Part {
    uint64_t slot;
    uint8_t number;
  };
  // Memory beside the slots, and by which key each device knows it.
  struct Holding {
    tuttiTransportMemory memory;
    uint32_t count = 0;
    struct OfDevice {
      std::shared_ptr<MemoryCache> cache;
      uint32_t key;
    };
    std::vector<OfDevice> devices;
  };
  // A slot that is on its way to the receiver.
  struct Coming {
    uint8_t parts = 0, mask = 0;
  };

  size_t at(uint64_t slot) const noexcept { return slot & (send_.depth - 1); }
  std::string nameOf(const Path& path) const;
  size_t indexOf(const Path& path) const noexcept;
  Path* anyUp() noexcept;

  bool hear(Path& path);
  void take(Path& path, const Completion& completion);
  void heard(const Note& note, Path& by);
  void partCame(const Note& note);
  void deliver();
  void credit(uint16_t number);
  void landed(Path& path);
  void free();
  bool isOver(uint64_t slot) const noexcept;

  void breakDown(Path& path, const std::string& why);
  void retireAsked(Path& path, uint8_t question);
  void have(Path& path, const Note& note);
  void retired(Path& path, const Note& note);
  void settle(uint64_t slot, const Path& path, bool arrived);
  void answer(Path& path);
  void lookAfter(Path& path);
  void revive(Path& path);
  void reviveAsked(Path& path, uint8_t life);
  void works(Path& path);
  void ask(Path& path);

  bool say();
  bool give();
  bool sendAgain();
  bool sendNew();
  void sendPart(uint64_t slot, uint8_t number, Path& path);
  bool writeHead(uint64_t slot, Path& path);
  bool writePayload(uint64_t slot, uint8_t number, Path& path);
  std::optional<uint32_t> keyOf(const std::byte* begin, size_t bytes, const Path& path) const noexcept;
  bool sendNext(uint64_t slot);
  std::vector<Path*> pathsUp() const;
  void fail(const std::string& why) noexcept;

  tuttiFifo send_, recv_;
  std::byte* memory_;
  tuttiTransportGpuSlots gpuSlots_{};  // begin null: there are none
  bool leads_;
  std::function<void(const std::string&)> log_;
  std::vector<std::unique_ptr<Path>> paths_;
  TimePoint now_{};
  std::string error_;
  bool failed_ = false;
  bool moved_ = false;

  uint64_t sent_ = 0;      // slots, the last of them perhaps in parts
  uint64_t credited_ = 0;  // slots that the peer has released
  uint64_t free_ = 0;      // slots that are not needed at this end any more
  std::vector<Sent> sentOf_;
  std::deque<Part> again_;
  // To be said on any path; what belongs together on one, in its order, or all of it again.
  std::deque<std::vector<Note>> notes_;

  uint64_t arrived_ = 0;  // slots that are complete in the FIFO
  uint64_t given_ = 0;    // slots whose release the peer has been told of
  bool giveAgain_ = false;
  std::vector<Coming> coming_;

  std::vector<Holding> holdings_;

  uint64_t broken_ = 0, revived_ = 0, sentInPlace_ = 0;
};

}  // namespace tutti::verbs
