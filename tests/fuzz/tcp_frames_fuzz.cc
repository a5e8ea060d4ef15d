// Data frames as they come over a socket, in the clear or sealed: what is no next frame is a fault, no byte lands
// outside of its slot or its place, and a slot is posted only when it is whole: with what was sent, whatever it was
// expected to be.
#include <algorithm>
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
    if (what % 4 == 0) return writeAnything();
    if (what % 4 == 1) return sendFrame();
    if (what % 4 == 2) return release();
    if ((what & 0x40) != 0) expect((what & 0x80) != 0);
    pump();
  }

  void writeAnything() {
    isClean_ = false;
    pair_.write(in_.bytes(in_.take<uint8_t>()));
  }

  // That the next slot has so many bytes; they may land.
  void expect(bool lands) {
    const uint32_t bytes = in_.take<uint16_t>() % (kSlotBytes + 1);
    if (isExpected_ && expected_.slot == posted_) return;
    lands = lands && bytes > link::kInlineBytes;
    place_ = std::make_unique<std::byte[]>(bytes);
    expected_ = {posted_, link::Fingerprint(), bytes, lands ? place_.get() : nullptr};
    isExpected_ = true;
    receiver_.land(expected_);
  }

  // A frame that is right but for what the input says.
  void sendFrame() {
    Head head{};
    head.frame.magic = transports::kFrameMagic;
    head.frame.sequence = ++sent_ + in_.take<uint8_t>() / 128U;
    head.frame.bytes = in_.take<uint16_t>() % (kSlotBytes + 2);
    const auto payload = in_.bytes(Framing::behindHead(head.frame));
    isClean_ = isClean_ && payload.size() == Framing::behindHead(head.frame);
    payloads_.emplace_back(payload.begin(), payload.end());
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
      if (isClean_) requireWhole(header);
    }
  }

  void requireWhole(const link::SlotHeader& header) const {
    const bool landed = header.carried == link::PayloadLocation::kAtReceiver;
    require(!landed || (isExpected_ && expected_.slot == posted_ && expected_.to != nullptr));
    const std::vector<std::byte>& sent = payloads_.at(posted_);
    DataFrame frame;
    frame.bytes = header.bytes;
    require(Framing::behindHead(frame) == sent.size());
    require(!landed || sent.size() == expected_.bytes);
    // Of nothing, too: memcmp refuses an empty vector's address.
    const std::byte* const arrived = landed ? expected_.to : fifo_.place(posted_, header.bytes);
    require(std::equal(sent.begin(), sent.end(), arrived));
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
  std::vector<std::vector<std::byte>> payloads_;  // of the frames that were sent; in a sealed head: empty
  bool isClean_ = true;                           // nothing else was
  bool isExpected_ = false;                       // something has been
  link::Landing expected_;
  std::unique_ptr<std::byte[]> place_;
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
