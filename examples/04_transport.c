/*
 * A transport of one's own, in a shared object: slots over a TCP stream between two processes of one host.
 *
 *   cc -std=c11 -shared -fPIC 04_transport.c -o libtutti_example.so
 *   TUTTI_TRANSPORT_PLUGINS=$PWD/libtutti_example.so all_reduce_perf --ranks 2 --transport example
 *
 * tutti tests it before it relies on it, and takes another one where it does not work. tutti/transport.h is the
 * contract.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tutti/transport.h>

/* What goes before each payload. Both ends are of one host: no byte order. */
typedef struct {
  uint32_t bytes, carried;
  unsigned char fingerprint[16];
} Frame;

typedef struct {
  tuttiTransportEdge edge;
  tuttiTransportLine line;
  int isServer, listener, stream;
  in_port_t peerPort;        /* in the order of the network; 0: not told yet */
  uint64_t sent, received;   /* slots */
  size_t sentOf, receivedOf; /* bytes of the next one, its frame included */
  Frame out, in;
  char why[200];
} Connection;

static int fail(Connection* c, const char* what, int error) {
  snprintf(c->why, sizeof c->why, "the example's link to rank %d %s%s%s", (int)c->edge.peer.rank, what,
           error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  return tuttiTransportFailed;
}

static int wouldBlock(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/* --- connecting: the lower rank listens --- */

/* Each end tells the other the port of its socket, over the line that is private to the two: so the one that listens
 * knows its peer among strangers. */
static int openHere(Connection* c, int* made) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof here;
  *made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (*made < 0 || bind(*made, (struct sockaddr*)&here, sizeof here) != 0 || (c->isServer && listen(*made, 16) != 0) ||
      getsockname(*made, (struct sockaddr*)&here, &length) != 0)
    return fail(c, "has no socket", errno);
  c->line.put(c->line.line, &here.sin_port, sizeof here.sin_port);
  return tuttiTransportIdle;
}

/* Whether it is known by now; or why not. */
static int knowsPort(Connection* c) {
  in_port_t port;
  if (c->peerPort != 0) return tuttiTransportAdvanced;
  const int64_t bytes = c->line.poll(c->line.line, &port, sizeof port);
  if (bytes < 0) return tuttiTransportIdle;
  if (bytes != sizeof port || port == 0) return fail(c, "was announced in words that are not understood", 0);
  c->peerPort = port;
  return tuttiTransportAdvanced;
}

static int acceptPeer(Connection* c) {
  for (;;) {
    struct sockaddr_in there = {0};
    socklen_t length = sizeof there;
    c->stream = accept4(c->listener, (struct sockaddr*)&there, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (c->stream < 0)
      return wouldBlock() || errno == ECONNABORTED ? tuttiTransportIdle : fail(c, "cannot be accepted", errno);
    if (there.sin_port == c->peerPort && there.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) return tuttiTransportAdvanced;
    close(c->stream); /* a stranger */
    c->stream = -1;
  }
}

/* Again and again: a connect() under way says so, and one that stands, too. */
static int callPeer(Connection* c) {
  const struct sockaddr_in there = {
      .sin_family = AF_INET, .sin_port = c->peerPort, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (connect(c->stream, (const struct sockaddr*)&there, sizeof there) == 0 || errno == EISCONN)
    return tuttiTransportAdvanced;
  return errno == EINPROGRESS || errno == EALREADY || errno == EINTR ? tuttiTransportIdle
                                                                     : fail(c, "cannot be connected", errno);
}

static tuttiTransportProgress exampleConnect(void* connection) {
  Connection* c = connection;
  const int known = knowsPort(c);
  if (known != tuttiTransportAdvanced) return known;
  return c->isServer ? acceptPeer(c) : callPeer(c);
}

/* --- moving slots --- */

static unsigned char* payloadOf(const tuttiFifo* fifo, uint64_t slot, uint32_t bytes) {
  const uint64_t at = slot & (fifo->depth - 1);
  return bytes <= TUTTI_INLINE_BYTES ? fifo->headers[at].inlined : fifo->slots + at * fifo->slotBytes;
}

/* Where the sender has it: it may lie in its program's memory. A socket takes it from there as well. */
static const unsigned char* payloadSent(const tuttiFifo* fifo, uint64_t slot, uint32_t bytes) {
  const tuttiSlotHeader* header = &fifo->headers[slot & (fifo->depth - 1)];
  uint64_t address;
  if (bytes <= TUTTI_INLINE_BYTES || header->carried != TUTTI_LENT) return payloadOf(fifo, slot, bytes);
  memcpy(&address, header->inlined, sizeof address);
  return (const unsigned char*)(uintptr_t)address;
}

/* As much as the socket takes of the frame and its payload. */
static ssize_t sendSome(Connection* c) {
  const tuttiFifo* fifo = &c->edge.send;
  const size_t frame = sizeof c->out;
  if (c->sentOf < frame)
    return send(c->stream, (const unsigned char*)&c->out + c->sentOf, frame - c->sentOf,
                MSG_NOSIGNAL | (c->out.bytes > 0 ? MSG_MORE : 0));
  const size_t at = c->sentOf - frame;
  return send(c->stream, payloadSent(fifo, c->sent, c->out.bytes) + at, c->out.bytes - at, MSG_NOSIGNAL);
}

static int pumpOut(Connection* c) {
  const tuttiFifo* fifo = &c->edge.send;
  int moved = tuttiTransportIdle;
  for (;;) {
    const tuttiSlotHeader* header = &fifo->headers[c->sent & (fifo->depth - 1)];
    if (__atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE) != c->sent + 1) return moved;
    if (c->sentOf == 0) {
      c->out.bytes = header->bytes;
      c->out.carried = header->carried == TUTTI_LENT ? 0 : header->carried;
      memcpy(c->out.fingerprint, header->fingerprint, sizeof c->out.fingerprint);
    }
    while (c->sentOf < sizeof c->out + c->out.bytes) {
      const ssize_t gone = sendSome(c);
      if (gone < 0) return wouldBlock() ? moved : fail(c, "failed", errno);
      c->sentOf += (size_t)gone;
      moved = tuttiTransportAdvanced;
    }
    /* The kernel has it, and needs nothing more of this end. */
    c->sentOf = 0;
    __atomic_store_n(fifo->released, ++c->sent, __ATOMIC_RELEASE);
  }
}

static ssize_t receiveSome(Connection* c) {
  const size_t frame = sizeof c->in;
  if (c->receivedOf < frame) return recv(c->stream, (unsigned char*)&c->in + c->receivedOf, frame - c->receivedOf, 0);
  const size_t at = c->receivedOf - frame;
  return recv(c->stream, payloadOf(&c->edge.recv, c->received, c->in.bytes) + at, c->in.bytes - at, 0);
}

static void deliver(Connection* c) {
  const tuttiFifo* fifo = &c->edge.recv;
  tuttiSlotHeader* header = &fifo->headers[c->received & (fifo->depth - 1)];
  header->bytes = c->in.bytes;
  header->carried = c->in.carried;
  memcpy(header->fingerprint, c->in.fingerprint, sizeof c->in.fingerprint);
  c->receivedOf = 0;
  __atomic_store_n(&header->sequence, ++c->received, __ATOMIC_RELEASE);
}

static int pumpIn(Connection* c) {
  const tuttiFifo* fifo = &c->edge.recv;
  int moved = tuttiTransportIdle;
  /* What finds no room stays in the socket, and holds the other end back. */
  while (c->received - __atomic_load_n(fifo->released, __ATOMIC_ACQUIRE) < fifo->depth) {
    const ssize_t come = receiveSome(c);
    if (come == 0) return moved != tuttiTransportIdle ? moved : fail(c, "was closed by the peer", 0);
    if (come < 0) return wouldBlock() || moved != tuttiTransportIdle ? moved : fail(c, "failed", errno);
    moved = tuttiTransportAdvanced;
    c->receivedOf += (size_t)come;
    if (c->receivedOf < sizeof c->in) continue;
    if (c->in.bytes > fifo->slotBytes && c->in.bytes > TUTTI_INLINE_BYTES)
      return fail(c, "announced more than a slot holds", 0);
    if (c->receivedOf == sizeof c->in + c->in.bytes) deliver(c);
  }
  return moved;
}

/* What the peer sent before it went is delivered, also where nothing can be sent to it any more. */
static tuttiTransportProgress exampleProgress(void* connection) {
  Connection* c = connection;
  if (c->why[0] != '\0') return tuttiTransportFailed;
  const int out = pumpOut(c), in = pumpIn(c);
  if (in == tuttiTransportAdvanced) {
    if (out == tuttiTransportFailed) c->why[0] = '\0'; /* it fails again once nothing comes */
    return tuttiTransportAdvanced;
  }
  return in == tuttiTransportFailed ? in : out;
}

static int exampleSending(void* connection) {
  const Connection* c = connection;
  const tuttiFifo* fifo = &c->edge.send;
  const tuttiSlotHeader* header = &fifo->headers[c->sent & (fifo->depth - 1)];
  return __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE) == c->sent + 1;
}

static int exampleInterest(void* connection, short* events) {
  const Connection* c = connection;
  const tuttiFifo* fifo = &c->edge.recv;
  const int hasRoom = c->received - __atomic_load_n(fifo->released, __ATOMIC_ACQUIRE) < fifo->depth;
  *events = (short)((hasRoom ? POLLIN : 0) | (exampleSending(connection) ? POLLOUT : 0));
  return c->stream;
}

/* --- the table --- */

static int exampleUsable(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room) {
  (void)self, (void)settings, (void)text, (void)room;
  return 1;
}

/* A close with bytes unread would take from the peer what it has not read yet. */
static void exampleClose(void* connection) {
  Connection* c = connection;
  char waste[4096];
  if (c->stream >= 0) {
    shutdown(c->stream, SHUT_WR);
    for (int reads = 0; reads < 64 && recv(c->stream, waste, sizeof waste, MSG_DONTWAIT) > 0; ++reads) {
    }
    close(c->stream);
  }
  if (c->listener >= 0) close(c->listener);
  free(c);
}

static void* exampleOpen(const tuttiTransportEdge* edge, const tuttiTransportLine* line, char* text, size_t room) {
  if (edge->self.hostId != edge->peer.hostId) {
    snprintf(text, room, "different hosts");
    return NULL;
  }
  Connection* c = calloc(1, sizeof *c);
  if (c == NULL) {
    snprintf(text, room, "no memory");
    return NULL;
  }
  c->edge = *edge;
  c->line = *line;
  c->listener = c->stream = -1;
  c->isServer = edge->self.rank < edge->peer.rank;
  if (openHere(c, c->isServer ? &c->listener : &c->stream) != tuttiTransportFailed) return c;
  snprintf(text, room, "%s", c->why);
  exampleClose(c);
  return NULL;
}

static void exampleError(void* connection, char* text, size_t room) {
  snprintf(text, room, "%s", ((Connection*)connection)->why);
}

/* The kernel reads any memory, and needs to keep nothing of it. Of what is taken back the rest is sent from the slot,
 * where the next look at the header finds it. */
static int exampleHold(void* connection, const tuttiTransportMemory* memory) {
  (void)connection, (void)memory;
  return 1;
}
static void exampleLetGo(void* connection, const tuttiTransportMemory* memory) { (void)connection, (void)memory; }
static void exampleTakeBack(void* connection) { (void)connection; }
static void exampleForget(const tuttiTransportMemory* memory) { (void)memory; }

static const tuttiTransport kExample = {
    .abi = TUTTI_TRANSPORT_ABI,
    .name = "example",
    .latencyUs = 50, /* the others come first where nobody asks for it */
    .bandwidthGBs = 1,
    .usable = exampleUsable,
    .open = exampleOpen,
    .connect = exampleConnect,
    .progress = exampleProgress,
    .sending = exampleSending,
    .interest = exampleInterest,
    .error = exampleError,
    .close = exampleClose,
    .hold = exampleHold,
    .letGo = exampleLetGo,
    .takeBack = exampleTakeBack,
    .forget = exampleForget,
};

const tuttiTransport* tuttiTransportEntry(const tuttiTransportHost* host, char* text, size_t room) {
  if (host->abi == TUTTI_TRANSPORT_ABI) return &kExample;
  snprintf(text, room, "made for interface %d of tutti, not %d", TUTTI_TRANSPORT_ABI, (int)host->abi);
  return NULL;
}
