// The ticket by which a rank of this process finds the memory that another has made for a link: only the right one, for
// the right kind of link, while its maker waits, leads anywhere; and it leads there once.
#include <cstring>
#include <memory>

#include "fuzz/input.h"
#include "link/transport.h"
#include "transports/p2p/p2p.h"

namespace tutti::fuzz {
namespace {

class Told : public link::OobChannel {
 public:
  explicit Told(Bytes ticket = {}) : ticket_(std::move(ticket)) {}
  void put(std::span<const std::byte> blob) override { ticket_.assign(blob.begin(), blob.end()); }
  std::optional<Bytes> poll() override { return ticket_; }
  void requestStream(link::StreamKind) override {}
  std::optional<SecureSocket> pollStream() override { return std::nullopt; }
  const Bytes& ticket() const noexcept { return ticket_; }

 private:
  Bytes ticket_;
};

link::Edge edgeOf(int self, uint32_t slotBytes, uint32_t depth) {
  link::Edge edge;
  edge.self = self;
  edge.peer = 1 - self;
  edge.slotBytes = slotBytes;
  edge.depth = depth;
  return edge;
}

std::unique_ptr<link::Connection> take(link::Transport& p2p, const link::Edge& edge, const Bytes& ticket) {
  Told oob(ticket);
  try {
    return p2p.open(edge, oob)->advance();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kRemote);
    return nullptr;
  }
}

void run(Input in) {
  const auto p2p = transports::makeP2p();
  const auto how = in.take<uint8_t>();
  const link::Edge made = edgeOf(0, 256, 2), wanted = edgeOf(1, how % 4 == 3 ? 512 : 256, how / 4 % 4 == 3 ? 4 : 2);
  Told makers;
  auto maker = p2p->open(made, makers);
  Bytes ticket = makers.ticket();
  if (how / 16 % 2 == 0) {
    const auto bytes = in.bytes(in.take<uint8_t>() % 16);
    ticket.assign(bytes.begin(), bytes.end());
  } else {
    for (std::byte& one : ticket) one ^= std::byte{in.take<uint8_t>()};
  }
  const bool right = ticket.size() >= makers.ticket().size() &&
                     std::memcmp(ticket.data(), makers.ticket().data(), makers.ticket().size()) == 0;
  const bool gone = how / 32 % 2 != 0;
  if (gone) maker.reset();
  const bool stands = take(*p2p, wanted, ticket) != nullptr;
  require(stands == (right && !gone && wanted.slotBytes == made.slotBytes && wanted.depth == made.depth));
  if (right) require(take(*p2p, wanted, ticket) == nullptr);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::run({data, size});
  return 0;
}
