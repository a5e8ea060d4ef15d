// Frames as they come over a socket, in pieces of any size: the reader takes what is a frame, calls the rest broken,
// holds no more than has come, and reads not one byte too many.
#include "fuzz/socket_pair.h"
#include "net/frame.h"

namespace tutti::fuzz {
namespace {

constexpr size_t kMostBytes = 4096;

// True while frames may follow.
bool readAll(FrameReader& reader, int fd) {
  for (;;) {
    Frame frame;
    switch (reader.read(fd, frame)) {
      case FrameReader::Status::kFrame:
        require(frame.payload.size() <= kMostBytes);
        continue;
      case FrameReader::Status::kNothing:
        return true;
      case FrameReader::Status::kBroken:
        require(!reader.error().empty());
        return false;
      case FrameReader::Status::kClosed:
        return false;
    }
  }
}

Cipher cipher() {
  CipherKey key;
  key.fill(std::byte{0x5a});
  return Cipher(CipherKind::kXChaCha20Poly1305, key);
}

void feed(Input in) {
  const SocketPair pair;
  FrameReader reader(kMostBytes);
  FrameQueue queue;
  if (in.take<uint8_t>() % 2 != 0) {
    reader.unseal(cipher());
    queue.seal(cipher());
  }
  while (!in.empty()) {
    const auto piece = in.take<uint8_t>();
    if (piece % 4 == 0) {  // a frame that is right but for what it says
      const auto body = in.bytes(piece);
      queue.push(in.take<uint8_t>(), std::make_shared<const Bytes>(body.begin(), body.end()));
      require(queue.flush(pair.theirs.get()));
    } else {
      pair.write(in.bytes(piece));
    }
    if (!readAll(reader, pair.ours.get())) return;
  }
  pair.endOfStream();
  require(!readAll(reader, pair.ours.get()));
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::feed({data, size});
  return 0;
}
