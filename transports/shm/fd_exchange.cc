#include "transports/shm/fd_exchange.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tutti::transports {
namespace {

struct alignas(cmsghdr) ControlBuffer {
  char bytes[CMSG_SPACE(FdExchange::kMaxFds * sizeof(int))];
};

bool wouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void attach(msghdr& message, ControlBuffer& control, const std::vector<int>& fds) {
  if (fds.empty()) return;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
}

// Takes ownership of every descriptor that came, wanted or not: none may leak.
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

bool FdExchange::advance() {
  if (sent_ < sizeof out_) send();
  if (received_ < sizeof in_) receive();
  return sent_ == sizeof out_ && received_ == sizeof in_;
}

void FdExchange::send() {
  iovec part{reinterpret_cast<char*>(&out_) + sent_, sizeof out_ - sent_};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  if (sent_ == 0) attach(message, control, outFds_);
  const ssize_t n = ::sendmsg(stream_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && !wouldBlock()) throw systemError("cannot pass a memory file to the peer", errno);
  if (n > 0) sent_ += static_cast<size_t>(n);
}

void FdExchange::receive() {
  iovec part{reinterpret_cast<char*>(&in_) + received_, sizeof in_ - received_};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t n = ::recvmsg(stream_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && wouldBlock()) return;
  if (n < 0) throw systemError("cannot receive the peer's memory file", errno);
  detach(message, inFds_);
  if (n == 0) throw Error(ErrorCode::kRemote, "the peer closed the Unix stream before it passed its memory file");
  if (inFds_.size() > kMaxFds || (message.msg_flags & MSG_CTRUNC) != 0)
    throw Error(ErrorCode::kRemote,
                "the peer passed more descriptors than an edge has, or they were cut off "
                "(is the limit of open files reached?)");
  received_ += static_cast<size_t>(n);
}

}  // namespace tutti::transports
