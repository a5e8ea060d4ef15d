// Data frames as they come over a socket, in the clear or sealed: what is no next frame is a fault, no byte lands
// outside of its slot, and a slot is posted only when it is whole.
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/socket_pair.h"
#include "transports/tcp/framing.h"
#include "transports/tcp/receiver.h"

namespace tutti::fuzz {
namespace {

using transports::ClearFraming;
using transports::DataFrame;
using transports::Head;
using transports::SealedFraming;
using transports::StreamFault;

constexpr uint32_t kSlotBytes = 256, kDepth = 4;

struct Memory {
  static constexpr size_t kBytes = link::Fifo::bytesFor(kSlotBytes, kDepth);
  alignas(128) std::byte bytes[kBytes] = {};
};

SessionKeys keys() {
  SessionKeys made;
  made.receive.fill(std::byte{0x5a});
  return made;
}

// A record as the other end would seal it.
void sealTo(const SocketPair& pair, Cipher& cipher, std::span<const std::byte> clear) {
  std::vector<std::byte> record(clear.size() + Cipher::kTagBytes);
  require(cipher.seal(record.data(), record.data() + clear.size(), clear.data(), clear.size()));
  pair.write(record);
}

template <class Framing>
class Stream {
 public:
  Stream(Input in, Framing framing) : in_(in), receiver_(pair_.ours.get(), fifo_, std::move(framing)) {}

  void run() {
    while (!in_.empty() && fault_ == StreamFault::kNone) step();
    if (fault_ != StreamFault::kNone) return;
    pair_.endOfStream();
    // The end is a fault as soon as everything has been taken: at most a slot for each byte that was sent.
    constexpr int kMoreThanWereSent = 1 << 20;
    for (int i = 0; i < kMoreThanWereSent && fault_ == StreamFault::kNone; ++i) {
      release();
      pump();
    }
    require(fault_ != StreamFault::kNone);
  }

 private:
  void step() {
    const auto what = in_.take<uint8_t>();
    if (what % 4 == 0) return pair_.write(in_.bytes(in_.take<uint8_t>()));
    if (what % 4 == 1) return sendFrame();
    if (what % 4 == 2) return release();
    pump();
  }

  // A frame that is right but for what the input says.
  void sendFrame() {
    Head head{};
    head.frame.magic = transports::kFrameMagic;
    head.frame.sequence = ++sent_ + in_.take<uint8_t>() / 128U;
    head.frame.bytes = in_.take<uint16_t>() % (kSlotBytes + 2);
    const auto payload = in_.bytes(Framing::behindHead(head.frame));
    if constexpr (Framing::kSealed) {
      sealTo(pair_, cipher_, std::as_bytes(std::span(&head, 1)));
      if (!payload.empty()) sealTo(pair_, cipher_, payload);
    } else {
      pair_.write(std::as_bytes(std::span(&head.frame, 1)));
      pair_.write(payload);
    }
  }

  void pump() {
    fault_ = receiver_.pump().fault;
    for (; posted_ < released_ + kDepth; ++posted_) {
      const link::SlotHeader& header = fifo_.headers[posted_ % kDepth];
      if (header.sequence.load() != posted_ + 1) break;
      require(header.bytes <= kSlotBytes);
    }
  }

  void release() {
    if (released_ < posted_) fifo_.released->value.store(++released_);
  }

  Input in_;
  SocketPair pair_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  link::Fifo fifo_ = link::Fifo::over(memory_->bytes, kSlotBytes, kDepth);
  transports::Receiver<Framing> receiver_;
  Cipher cipher_{keys().kind, keys().receive};
  uint64_t sent_ = 0, posted_ = 0, released_ = 0;
  StreamFault fault_ = StreamFault::kNone;
};

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::Input in(data, size);
  if (in.take<uint8_t>() % 2 == 0)
    fuzz::Stream(in, transports::ClearFraming()).run();
  else
    fuzz::Stream(in, transports::SealedFraming(fuzz::keys())).run();
  return 0;
}
