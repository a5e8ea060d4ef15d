// The sockets of links, for a process that ends without closing them. Its part of a communicator may have to stay for
// others, who must learn meanwhile that it sends nothing more.
#pragma once

namespace tutti {

// One is noted from its making until just before it is closed. Any thread; noting throws std::bad_alloc.
void noteLinkSocket(int fd);
void forgetLinkSocket(int fd) noexcept;

// To the peers of all of them: nothing more comes.
void endLinkSockets() noexcept;
// When nobody reads from them any more, and the process closes them: a connection on which something unread has come
// would be reset, and a reset takes from the peer what it has not read yet.
void emptyLinkSockets() noexcept;

}  // namespace tutti
