// The set-up of a shared memory edge, with a peer that passes any greeting and any descriptors: it connects only when
// all is as it must be, and no descriptor is left open.
#include <fcntl.h>
#include <sys/mman.h>

#include <vector>

#include "fuzz/descriptors.h"
#include "fuzz/socket_pair.h"
#include "link/edge_memory.h"
#include "link/transport.h"
#include "transports/shm/fd_exchange.h"
#include "transports/shm/shm.h"
#include "window/own_window.h"

namespace tutti::fuzz {
namespace {

using transports::ShmGreeting;

class OneStream : public link::OobChannel {
 public:
  explicit OneStream(UniqueFd fd) : fd_(std::move(fd)) {}
  void put(std::span<const std::byte>) override {}
  std::optional<Bytes> poll() override { return std::nullopt; }
  void requestStream(link::StreamKind) override {}
  std::optional<SecureSocket> pollStream() override { return SecureSocket{std::move(fd_), std::nullopt}; }

 private:
  UniqueFd fd_;
};

link::Edge edgeOf(bool maker) {
  link::Edge edge;
  edge.self = maker ? 0 : 1;
  edge.peer = maker ? 1 : 0;
  edge.slotBytes = 256;
  edge.depth = 2;
  return edge;
}

UniqueFd openAny(uint8_t what, size_t right) {
  const char* const kFolder = "/";
  switch (what % 7) {
    case 0:
      return createMemoryFile("fuzz", right);
    case 1:
      return createMemoryFile("fuzz", what);
    case 2:
      return createMemoryFile("fuzz", link::kBellFileBytes);
    case 3: {  // not sealed
      UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
      return ::ftruncate(file.get(), static_cast<off_t>(right)) == 0 ? std::move(file) : UniqueFd();
    }
    case 4: {  // a window, whole or not
      UniqueFd file = createMemoryFile("fuzz", (what / 7 % 3) * window::kPieceBytes + what / 21 % 2);
      const window::Card card{window::kMagic, {what, 2}};
      if (what / 42 % 2 != 0 && ::pwrite(file.get(), &card, sizeof card, 0) < 0) return UniqueFd();
      return file;
    }
    case 5:
      return UniqueFd(::open(kFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    default:
      return UniqueFd(::dup(STDERR_FILENO));
  }
}

void pass(const UniqueFd& socket, std::span<const std::byte> bytes, const std::vector<UniqueFd>& files) {
  if (bytes.empty()) return;
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  if (!files.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    for (size_t i = 0; i < files.size(); ++i) {
      const int fd = files[i].get();
      std::memcpy(CMSG_DATA(head) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
}

std::vector<std::byte> greetingFrom(Input& in, const link::Edge& edge, bool maker) {
  // A right one, with a few bytes changed.
  ShmGreeting greeting{transports::kShmMagic,
                       transports::kShmVersion,
                       edge.slotBytes,
                       edge.depth,
                       maker ? 0 : link::edgeMemoryBytes(edge),
                       0,
                       0,
                       {},
                       0};
  greeting.lends = in.take<uint8_t>() % 3;
  greeting.bells = in.take<uint8_t>() % 3;
  greeting.windows = in.take<uint8_t>() % 3;
  std::vector<std::byte> bytes(sizeof greeting);
  std::memcpy(bytes.data(), &greeting, sizeof greeting);
  for (int changes = in.take<uint8_t>() % 4; changes > 0; --changes) {
    const auto place = in.take<uint8_t>(), change = in.take<uint8_t>();
    bytes[place % bytes.size()] ^= std::byte{change};
  }
  return bytes;
}

void meet(Input in) {
  const auto how = in.take<uint8_t>();
  const bool maker = (how & 1) != 0;
  const link::Edge edge = edgeOf(maker);
  SocketPair pair;
  const size_t right = link::edgeMemoryBytes(edge);
  std::vector<UniqueFd> files;
  for (int i = 0; i < (how >> 1) % 5; ++i) files.push_back(openAny(in.take<uint8_t>(), right));
  const auto greeting = greetingFrom(in, edge, maker);
  const size_t first = (how & 0x80) ? in.take<uint8_t>() % greeting.size() : greeting.size();
  OneStream oob(std::move(pair.ours));
  const auto shm = transports::makeShm();
  try {
    const auto setup = shm->open(edge, oob);
    pass(pair.theirs, std::span(greeting).first(first), files);
    auto connection = setup->advance();
    pass(pair.theirs, std::span(greeting).subspan(first), {});
    pair.endOfStream();
    if (!connection) connection = setup->advance();
    if (connection)
      require(connection->recv.fifo.depth == edge.depth && connection->recv.fifo.slotBytes == edge.slotBytes);
  } catch (const Error&) {
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tutti::fuzz::leavingNoneOpen(tutti::fuzz::meet, data, size);
}
