/* clang-format off */
/*
 * tutti/transport.h: transports of others.
 *
 * A transport moves what one rank posts to a link to the other end of it. A shared object that exports
 * tuttiTransportEntry(), and that TUTTI_TRANSPORT_PLUGINS names, is one more transport beside tutti's own, under the same
 * choice, the same self-test and the same fallback. tutti's RDMA (transports/verbs) is one, and examples/04_transport.c.
 *
 * A link has two FIFOs, one a direction, and each end has memory of its own for both. The transport copies: it takes
 * the slots that are posted at the sender's end in their order, makes them appear at the receiver's end, unchanged and
 * exactly once, and lets the sender's end know what the receiver has released. Or it reports a failure: nothing may be
 * lost in silence, and nothing may hang.
 *
 * How a FIFO is read and written. Acquire and release are C11's memory orders, on 64-bit words.
 *
 * - Slot n is the n-th that was ever posted on the link, from 0. It lies at n modulo `depth`.
 * - At the sender's end it is posted when its header's `sequence`, loaded with acquire, is n + 1: header and payload are
 *   complete. The payload has `bytes` bytes; up to TUTTI_INLINE_BYTES of them lie in the header's `inlined`, more in the
 *   slot.
 * - At the receiver's end it may be written once *released, loaded with acquire, is more than n - depth. The transport
 *   writes payload, `fingerprint`, `bytes` and `carried`, and then stores n + 1 into `sequence`, with release.
 * - At the sender's end the transport stores n + 1 into *released, with release, when it will read slot n no more and the
 *   slot needs nothing more from the sender to arrive. Nobody else writes it there, and the next slot in that place is
 *   posted only then.
 * - To a transport that holds memory (see hold()) a slot may be posted with TUTTI_LENT in `carried`: then the payload, of
 *   more than TUTTI_INLINE_BYTES, lies in memory that the connection holds, from the address on that the first 8 bytes of
 *   `inlined` are, and stays there until *released says so, or takeBack() is called. It arrives as any other: the payload
 *   in the slot, and 0 in `carried`.
 * - To a transport that reaches the memory of GPUs (see reachesGpu()) an edge may be given whose slots lie there, at both
 *   ends (tuttiTransportEdge's `gpuSlots`). Headers and counters are the host's all the same. The processor does not
 *   touch these slots: a device of the network reads and writes them.
 *
 * Threads: tutti calls a connection from one thread at a time, but not always the same; the ends of a FIFO that are not
 * the transport's are used by other threads meanwhile. Different connections are used side by side. No function may
 * block, throw, or call back into tutti but for what tuttiTransportHost and tuttiTransportLine give it.
 *
 * A process that forks: the child makes connections of its own, and leaves those of its parent alone.
 */
/* clang-format on */
#ifndef TUTTI_TRANSPORT_H
#define TUTTI_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_TRANSPORT_ABI 3
#define TUTTI_INLINE_BYTES 32
#define TUTTI_LENT 1

typedef struct {
  uint64_t sequence;
  unsigned char fingerprint[16]; /* of the call; opaque, moved as it is */
  uint32_t bytes;                /* of payload */
  uint32_t carried;              /* moved as it is, but for TUTTI_LENT, which arrives as 0 */
  unsigned char inlined[TUTTI_INLINE_BYTES];
  unsigned char unused[64]; /* keeps two headers out of each other's cache lines; need not be moved */
} tuttiSlotHeader;

typedef struct {
  unsigned char* slots; /* depth times slotBytes; of a GPU where the edge has gpuSlots */
  tuttiSlotHeader* headers;
  uint64_t* released;
  uint32_t slotBytes;
  uint32_t depth; /* a power of two, 64 at most */
} tuttiFifo;

/* Where a rank runs. Texts live as long as the call. */
typedef struct {
  int32_t rank;
  int32_t pid;
  uint64_t hostId;  /* the same for ranks of one host and network namespace */
  uint64_t process; /* the same for ranks that are threads of one process */
  int32_t numaNode; /* -1: several, or unknown */
  int32_t device;   /* number of the GPU with the rank's buffers; -1: host memory */
  const char* hostName;
} tuttiTransportRank;

/* What tutti's settings for transports say (docs/settings.md: TUTTI_IB_*), as the communicator found them when it was
   made: a name, its value, the next name, and so on, and a NULL at the end. Settings of a transport's own are its own
   to read. */
typedef const char* const* tuttiTransportSettings;

/* Memory of the GPU that self.device names, in which both FIFOs' slots lie, alike at both ends. Lives as long as the
   connection. */
typedef struct {
  void* begin; /* NULL: slots lie in the edge's memory, the rest says nothing */
  size_t bytes;
  int32_t dmabuf;        /* a descriptor of a dma-buf that holds it, which stays tutti's; -1: there is none */
  uint64_t dmabufOffset; /* of `begin` in that */
  /* What was written there from outside before it is called is seen by the GPU once it returns 0: to be called when the
     payload of a slot has come, before its `sequence` is stored. Another number: it has failed, and so has the
     connection. NULL: none of it is needed. Any thread. */
  int (*flush)(void* with);
  void* with;
} tuttiTransportGpuSlots;

typedef struct {
  tuttiTransportRank self, peer;
  int32_t channel; /* two ranks may have several links */
  tuttiFifo send, recv;
  void* memory; /* that holds both FIFOs, but for slots of GPUs, from the begin of a page, zeroed, for as long as the
                   connection is there */
  size_t memoryBytes;
  tuttiTransportSettings settings; /* for as long as the connection is there */
  tuttiTransportGpuSlots gpuSlots;
} tuttiTransportEdge;

/* Memory of the program that stays where it is until forget(): what it has registered (tuttiCommRegister) or allocated
   (tuttiMemAlloc). In one process no two have the same number, at any time; they may overlap. */
typedef struct {
  const void* begin;
  size_t bytes;
  uint64_t number;
} tuttiTransportMemory;

/* The two ends' private line while they connect, over the control plane: authenticated, in order. */
typedef struct {
  void* line; /* first argument of what follows */
  /* Reaches the other end's poll(). 64 KiB at most; a few in all. */
  void (*put)(void* line, const void* blob, size_t bytes);
  /* The next blob of the other end: copies what fits into `room` bytes, and returns its length; -1 when none has come.
   */
  int64_t (*poll)(void* line, void* blob, size_t room);
} tuttiTransportLine;

typedef enum { tuttiTransportFailed = -1, tuttiTransportIdle = 0, tuttiTransportAdvanced = 1 } tuttiTransportProgress;

/* What tutti gives a transport. Lives as long as the process. */
typedef struct {
  uint32_t abi;
  /* TUTTI_DEBUG says from where on: 0 a warning, 1 info, 2 debug. */
  void (*log)(int level, const char* text);
} tuttiTransportHost;

/* What a transport gives tutti. Lives as long as the process. Connections are its own, made by open(). */
typedef struct {
  uint32_t abi;        /* TUTTI_TRANSPORT_ABI */
  const char* name;    /* lower-case letters and digits, which TUTTI_TRANSPORT names */
  double latencyUs;    /* of a slot of a few bytes, from post to arrival: what the choice of a transport goes by */
  double bandwidthGBs; /* of a long message between two hosts; within one, half of it is reckoned with */
  /* Whether this process can use it at all: 1, or 0 with the reason, which ends in a zero, in `text`; other ranks get
     to know. Whether it reaches a certain peer shows when it connects: then the next transport is tried. */
  int (*usable)(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room);
  /* A connection in the making; NULL where that fails, with the reason, which ends in a zero, in `text`. Both ends
   * open. */
  void* (*open)(const tuttiTransportEdge* edge, const tuttiTransportLine* line, char* text, size_t room);
  /* Does what can be done now, again and again: advanced once the connection stands, idle before. After a failure,
     error() says why. `line` is there until then. */
  tuttiTransportProgress (*connect)(void* connection);
  /* Moves what can be moved now, both ways. Failed, once and from then on: the connection is over. What has come before
     stays where it is, and is taken. */
  tuttiTransportProgress (*progress)(void* connection);
  /* 1 while something that is posted has not been handed to the network. */
  int (*sending)(void* connection);
  /* A descriptor to sleep on and what to wait for there (POLLIN, POLLOUT): it wakes when progress() has something to
     do. -1 where there is none, and tutti looks every so often. Called again before each sleep. */
  int (*interest)(void* connection, short* events);
  /* What has failed, with the peer's address: a zero-terminated text of at most `room` bytes. */
  void (*error)(void* connection, char* text, size_t room);
  /* Ends it, at any time. Nothing of it touches the edge's memory afterwards, from neither end. */
  void (*close)(void* connection);

  /* Payloads beside slots (TUTTI_LENT): all four functions, or NULL for all. Only a sender's end is asked, and each end
     for itself. */

  /* Whether slots that are posted from now on may have their payloads in this memory: 1, and then until letGo(), which
     is called as often as this has said 1, and not before such slots are released or taken back. 0: they are copied
     into slots. That is no error; the reason is for log(), once. May take as long as the memory takes to be registered.
   */
  int (*hold)(void* connection, const tuttiTransportMemory* memory);
  void (*letGo)(void* connection, const tuttiTransportMemory* memory);
  /* The calls that have lent something have failed. What was posted so and is not released lies in its slots by now,
     and `carried` is 0. Once this returns, nothing reads it elsewhere, also no device: where that takes it, the
     connection fails. */
  void (*takeBack)(void* connection);
  /* Of no connection: whatever any of them keeps of this memory is given up when it returns, or where it is still held,
     which is an error of the program's, with letGo(). Any thread, at any time. */
  void (*forget)(const tuttiTransportMemory* memory);

  /* Slots in memory of GPUs (gpuSlots), or NULL: it knows of none. As usable(): whether this process can move them to
     and from the memory of the GPU self->device. Whether that GPU's memory can be registered shows in open(). */
  int (*reachesGpu)(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room);
} tuttiTransport;

/* What the shared object exports: called with the same `host` for each communicator that is made, by any thread; the
   same table each time. NULL where it cannot be used with this host's `abi`, with the reason, which ends in a zero, in
   `text`: an error for whoever named it. What the machine lacks is for usable() to say. */
typedef const tuttiTransport* tuttiTransportEntry_t(const tuttiTransportHost* host, char* text, size_t room);
const tuttiTransport* tuttiTransportEntry(const tuttiTransportHost* host, char* text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
