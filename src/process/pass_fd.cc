#include "process/pass_fd.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tutti {
namespace {

constexpr size_t kMostFds = 8;

struct alignas(cmsghdr) ControlBuffer {
  char bytes[CMSG_SPACE(kMostFds * sizeof(int))];
};

bool wouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void attach(msghdr& message, ControlBuffer& control, std::span<const int> fds) {
  if (fds.empty()) return;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
}

void detach(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

size_t sendWithFds(int stream, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMostFds) throw Error(ErrorCode::kInternal, "too many descriptors for one message");
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  attach(message, control, fds);
  const ssize_t n = ::sendmsg(stream, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && !wouldBlock()) throw systemError("cannot pass a memory file to the peer", errno);
  return n > 0 ? static_cast<size_t>(n) : 0;
}

size_t receiveWithFds(int stream, std::span<std::byte> bytes, size_t mostFds, std::vector<UniqueFd>& fds) {
  ControlBuffer control{};
  fds.reserve(fds.size() + sizeof control.bytes / sizeof(int));  // what has come is kept without memory
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(mostFds * sizeof(int));
  const ssize_t n = ::recvmsg(stream, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && wouldBlock()) return 0;
  if (n < 0) throw systemError("cannot receive the peer's memory file", errno);
  const size_t before = fds.size();
  detach(message, fds);
  if (n == 0) throw Error(ErrorCode::kRemote, "the peer closed the Unix stream before it passed its memory file");
  if (fds.size() - before > mostFds || (message.msg_flags & MSG_CTRUNC) != 0)
    throw Error(ErrorCode::kRemote,
                "the peer passed more descriptors than were expected, or they were cut off "
                "(is the limit of open files reached?)");
  return static_cast<size_t>(n);
}

}  // namespace tutti
