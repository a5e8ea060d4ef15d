// A thread that sleeps on sockets can not sleep on a futex as well. Its rank then has an ear: a datagram socket that
// sleeps among the others, and on which whoever rings the bell leaves a word. Ranks that share memory reach each
// other's abstract Unix sockets (topology::PeerInfo::hostId), and the socket's name lies beside the bell.
#pragma once
#include "link/fifo.h"
#include "process/fd.h"

namespace tutti::link {

class Ear {
 public:
  // Of the bell's owner; one for each bell. Throws Error.
  explicit Ear(Doorbell& bell);
  int fd() const noexcept { return socket_.get(); }
  void drain() noexcept;  // any thread

 private:
  UniqueFd socket_;
};

// By wake(): leaves a word. Nobody there, or an ear that is full: both are fine.
void nudge(const Doorbell& bell) noexcept;

}  // namespace tutti::link
