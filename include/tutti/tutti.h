/* tutti: collective communication between processes, threads and machines. Plain C, no CUDA header needed.
 *
 * Units. Counts are elements of the given data type, below 2^48 in all in one call; sizes are bytes. Ranks count from
 * 0. Buffers. The caller owns them. A send buffer is only read; a receive buffer is written in full on success and has
 *   unspecified contents after an error. Any alignment. They may not overlap, except "in place": send == recv for
 *   all-reduce, broadcast, reduce and all-to-all; recv + rank * count == send for all-gather, and for gather at the
 *   root; send + rank * count == recv for reduce-scatter, and for scatter at the root; in the v-variants where the
 *   rank's own part lies in the larger buffer. Each rank may choose for itself. A count of 0 is allowed everywhere,
 *   with any buffer pointer.
 * Streams. A NULL stream runs the operation in the calling thread and returns when it is done. A stream made by
 *   tuttiStreamCreate is an in-order queue with a thread of its own: the call returns at once, buffers may be touched
 *   again after tuttiStreamSynchronize. Communicators on a GPU take CUDA's streams and no others, those on the host
 *   tuttiStreamCreate's: a stream of the other kind gets tuttiInvalidArgument. A process that ends normally waits for
 *   what is queued on the latter, for a second or so, and drops the rest, before it destroys static objects that were
 *   there before its first such stream; calls that would queue more get tuttiSystemError from then on.
 * Order. All ranks of a communicator make the same collective calls in the same order.
 * Threads. A communicator is used by one thread at a time (a call from a second thread gets tuttiInvalidUsage), except
 *   for tuttiCommAbort, tuttiCommRevoke, tuttiCommDump, tuttiCommGetAsyncError, tuttiCommGetStats, tuttiCommGetWaits,
 *   tuttiCommIdle and tuttiGetLastError, which any thread may call. Different communicators are independent. Groups
 *   belong to the calling thread.
 * Arithmetic. half, bfloat16 and fp8 values are added in float and rounded once whenever a partial result is stored.
 *   Integers wrap. An average is the sum divided by the number of ranks; of integers: the wrapped sum, divided towards
 *   zero. A pre-multiplied sum adds products that were rounded to the type. All ranks get the same bits. Which bits of
 *   a floating-point result, depends on the algorithm that the plan chooses, by the size of the message and where the
 *   ranks are; with config.reproducible on the values and the number of ranks alone, where all threads that call, or
 *   make streams, have one floating-point mode (of MXCSR, say: how to round, whether denormals become zero).
 *   NaN. Every operator gives NaN where a rank has one, max and min too. With two ranks or more it has all bits set but
 *   the sign, whatever went in.
 *   Signs. Sums, products and averages have those of IEEE 754: 0 and -0 make 0. To max and min these two are equal, and
 *   either may come out.
 *   Bitwise operators are for integers, signed ones as two's complement, and for bool. On floats they are refused
 *   (tuttiInvalidArgument): give an unsigned type of the same size.
 *   bool. A byte, true unless it is 0. A reduction makes 0 or 1 of it, also with one rank alone; what only moves comes
 *   as it was. sum, max and tuttiBitOr are "or"; prod, min and tuttiBitAnd are "and"; tuttiBitXor is true where an odd
 *   number of ranks is. An average or a pre-multiplied sum is refused (tuttiInvalidArgument).
 * Flags. None is defined yet where an argument is called `flags`: it is 0.
 * Fork. A child made by fork (without exec) cannot use its parent's communicators and streams: tuttiInvalidUsage. Its
 *   life and its end mean nothing to the other ranks. It may make communicators of its own. Memory of tuttiMemAlloc it
 *   shares with its parent, and may free for itself; what the parent frees is empty for it from then on.
 * Errors. Every function returns a tuttiResult_t; tuttiGetLastError tells in words what happened, to whom, and what to
 *   do. No call hangs: joining, connecting and each operation have deadlines (tuttiConfig_t).
 * Profilers. Every function has a second name, ptutti…, as MPI's have: a program, or a library loaded before this one,
 * may have a function of the first name that does something of its own and calls the second.
 */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H
#include <stddef.h>
#include <stdint.h>

#if defined(TUTTI_BUILDING_LIBRARY)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

#define TUTTI_MAJOR 0
#define TUTTI_MINOR 2
#define TUTTI_PATCH 0
#define TUTTI_VERSION_CODE (TUTTI_MAJOR * 10000 + TUTTI_MINOR * 100 + TUTTI_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tuttiComm* tuttiComm_t;
/* The CUDA runtime's stream type, or a stream made by tuttiStreamCreate. */
typedef struct CUstream_st* tuttiStream_t;
/* One operation, or a call that was made ready: see "Calls with a configuration of their own". */
typedef struct tuttiRequest* tuttiRequest_t;

/* Results, data types and operators below 64 have NCCL's numbers, those to come included; tutti's own begin at 64. The
 * …Max of each enumeration makes it an int: a value that this header does not know yet is one, too. */
typedef enum {
  tuttiSuccess = 0,
  tuttiUnhandledCudaError = 1,
  tuttiSystemError = 2,     /* the operating system refused something */
  tuttiInternalError = 3,   /* a defect of this library */
  tuttiInvalidArgument = 4, /* one argument of this call is wrong in itself */
  tuttiInvalidUsage = 5,    /* a call or a setting does not fit the others, here or on another rank */
  tuttiRemoteError = 6,     /* another rank failed, left or aborted */
  tuttiInProgress = 7,
  tuttiTimeout = 8, /* a deadline passed */
  tuttiResultMax = 0x7fffffff
} tuttiResult_t;

typedef enum {
  tuttiInt8 = 0,
  tuttiUint8 = 1,
  tuttiInt32 = 2,
  tuttiUint32 = 3,
  tuttiInt64 = 4,
  tuttiUint64 = 5,
  tuttiFloat16 = 6,
  tuttiFloat32 = 7,
  tuttiFloat64 = 8,
  tuttiBfloat16 = 9,
  tuttiFloat8e4m3 = 10,
  tuttiFloat8e5m2 = 11,
  tuttiNumTypes = 12, /* of NCCL's */
  tuttiBool = 64,     /* a byte: true unless it is 0 */
  tuttiInt16 = 65,
  tuttiUint16 = 66,
  tuttiDataTypeMax = 0x7fffffff
} tuttiDataType_t;

/* Values from 1024 on are operators made by tuttiRedOpCreatePreMulSum. */
typedef enum {
  tuttiSum = 0,
  tuttiProd = 1,
  tuttiMax = 2,
  tuttiMin = 3,
  tuttiAvg = 4,
  tuttiNumOps = 5,  /* of NCCL's */
  tuttiBitAnd = 64, /* bitwise: not on floats */
  tuttiBitOr = 65,
  tuttiBitXor = 66,
  tuttiMaxRedOp = 0x7fffffff
} tuttiRedOp_t;

typedef enum {
  tuttiScalarDevice = 0,
  tuttiScalarHostImmediate = 1,
  tuttiScalarResidenceMax = 0x7fffffff
} tuttiScalarResidence_t;

/* ---- Version and errors ------------------------------------------------------------------------------------------ */

/* The library's TUTTI_VERSION_CODE. */
TUTTI_API tuttiResult_t tuttiGetVersion(int* version);
/* A short, constant text for a result code; never NULL. */
TUTTI_API const char* tuttiGetErrorString(tuttiResult_t result);
/* The text of the last error: of `comm`, or with NULL of the calling thread, which knows nothing of what other threads'
 * calls have met. Empty when there was none. Valid until the calling thread's next call of this function or of
 * tuttiGetLastProcessError. Any thread. */
TUTTI_API const char* tuttiGetLastError(tuttiComm_t comm);
/* The newest text of an error of any thread of this process, for a watchdog that makes no calls itself: of a call's, of
 * a join's in the background, and of what tuttiCommGetAsyncError has found. Empty when there was none. Valid until the
 * calling thread's next call of this function or of tuttiGetLastError. Any thread, to the very end of the process. */
TUTTI_API const char* tuttiGetLastProcessError(void);

/* ---- Communicators -----------------------------------------------------------------------------------------------
 * The functions that make one write its handle to *comm, *child or comms[] when they return tuttiSuccess or
 * tuttiInProgress. After an error that is as it was. */

#define TUTTI_UNIQUE_ID_BYTES 128
/* Carries the root's addresses and a secret: whoever has it can join. */
typedef struct {
  char internal[TUTTI_UNIQUE_ID_BYTES];
} tuttiUniqueId;

/* Set size and version with TUTTI_CONFIG_INITIALIZER; every other field's zero means "default", of texts NULL and "";
 * but in what a child is made with, 0 and NULL mean what its parent has, and "" the default. A struct may be shorter
 * or longer than this one: of an older header, what it lacks is at its default; of a newer one, what this library does
 * not know has to be zero. Fields called reserved are zero. The same on every
 * rank must be channels, channelRules, transports, algorithm, protocol, heartbeatMs, encrypt, reproducible and the kind
 * of device. The environment wins: a variable that is set (docs/settings.md) overrides the field that means the same,
 * also in what is split off or shrunk; TUTTI_DEBUG=info names what was overridden. */
typedef struct {
  size_t size;
  unsigned int version;
  int joinTimeoutMs;      /* default 60,000; TUTTI_JOIN_TIMEOUT_MS wins */
  int connectTimeoutMs;   /* default 20,000; TUTTI_CONNECT_TIMEOUT_MS wins */
  int operationTimeoutMs; /* default 1,800,000; TUTTI_OPERATION_TIMEOUT_MS wins */
  int channels;           /* lanes that split each collective; default: the plan decides; TUTTI_CHANNELS wins. A number
                             for each operation: channelRules */
  int reserved0;
  const char* transports; /* as TUTTI_TRANSPORT, which wins: "tcp", "shm,tcp", "^shm" */
  const char* algorithm;  /* as TUTTI_ALGO, which wins: "ring", "tree,ring", "^oneshot", "tree;all_reduce:ring" */
  const char* name;       /* for logs and error texts; copied */
  int heartbeatMs;        /* how long a rank may be silent before it counts as gone; default 20,000; -1: for ever;
                             TUTTI_HEARTBEAT_MS wins */
  int encrypt;            /* 1: seal what crosses a network. TUTTI_ENCRYPT wins; a 0 there is warned of */
  int nonBlocking;        /* 1: the functions that make a communicator return at once. See tuttiCommInitRankConfig. In
                             a struct that is given, 0 is blocking; without one, a child has its parent's */
  int reserved1;
  const char* device; /* where all buffers of this communicator are: "cpu" (the default), "cuda:2", or "cuda": the
                         calling thread's current GPU. TUTTI_DEVICE wins, and that is warned of. May differ by rank
                         but for the kind: all on GPUs or none */
  int reproducible;   /* 1: so many ranks always get the same bits of the same values, see "Arithmetic";
                         TUTTI_REPRODUCIBLE wins; a 0 there is warned of */
  int reserved2;
  const char* channelRules; /* as TUTTI_CHANNELS, which wins: "2;all_reduce:8". Not together with `channels` */
  const char* protocol;     /* on GPUs, as TUTTI_PROTOCOL, which wins: "ll128,simple", "^ll", "simple;broadcast:ll" */
} tuttiConfig_t;

#define TUTTI_CONFIG_INITIALIZER \
  { sizeof(tuttiConfig_t), TUTTI_VERSION_CODE, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, NULL, NULL }

/* Makes a new id, and starts to listen for those who come with it. Call it on one rank (any), carry the bytes to the
 * others. The process that made it must live until all have joined. It is good for one communicator, and expires
 * TUTTI_JOIN_TIMEOUT_MS (60 s) after this call: whoever comes later gets tuttiTimeout. Where ranks may take longer to
 * come, set that variable higher in the environment of this process; config.joinTimeoutMs says only how long a rank
 * waits that has come. */
TUTTI_API tuttiResult_t tuttiGetUniqueId(tuttiUniqueId* id);
/* Joins as `rank` of `ranks`. Blocks until all have come, or fails with tuttiTimeout naming those who have not. A
 * secret in TUTTI_SECRET or TUTTI_SECRET_FILE counts beside the id: tuttiInvalidUsage on all where ranks differ in it.
 */
TUTTI_API tuttiResult_t tuttiCommInitRank(tuttiComm_t* comm, int ranks, tuttiUniqueId id, int rank);
/* With config->nonBlocking the handle comes back at once, together with tuttiInProgress, and joining goes on in the
 * background: tuttiCommGetAsyncError gives tuttiInProgress until it is tuttiSuccess or an error (the text is in
 * tuttiGetLastError(comm)). Meanwhile only that one, tuttiCommIdle, tuttiCommAbort and tuttiCommRevoke, from any
 * thread, may be called on it; the last two end it soon. What could not join is to be destroyed or aborted. The
 * environment, the secret and the current GPU are read during the call. So with all functions that make communicators;
 * in a group they come later still, see tuttiGroupStart. */
TUTTI_API tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t* comm, int ranks, tuttiUniqueId id, int rank,
                                                const tuttiConfig_t* config);
/* Joins as what the launcher's environment says (TUTTI_RANK, TUTTI_SIZE and TUTTI_ID, or a known launcher's own
 * variables). `config` may be NULL. Without any launcher this is an error that lists what was looked for. */
TUTTI_API tuttiResult_t tuttiCommInitEnv(tuttiComm_t* comm, const tuttiConfig_t* config);
/* Makes `ranks` communicators in this process, one a rank; comms points to an array of that length. `devices` says on
 * which GPU each rank's buffers are (several may share one; -1: host memory), whatever TUTTI_DEVICE says; NULL: as
 * TUTTI_DEVICE says, or config->device. Drive them from one thread inside a group, or each from a thread of its own.
 * All or none; with config->nonBlocking, or in a group, each says by itself what became of it. `config` may be NULL. */
TUTTI_API tuttiResult_t tuttiCommInitAll(tuttiComm_t* comms, int ranks, const int* devices);
TUTTI_API tuttiResult_t tuttiCommInitAllConfig(tuttiComm_t* comms, int ranks, const int* devices,
                                               const tuttiConfig_t* config);

/* What tuttiCommInitEnv goes by. Set `size` to sizeof(tuttiLaunch_t) before the call. In the struct of a newer header,
 * what this library does not know becomes 0, and `size` what it does know. */
typedef struct {
  size_t size;
  int rank, ranks;
  int localRank, localRanks; /* of this host; -1: not told */
  int oneHost;               /* 1: all ranks are on one host, as far as is told */
  int rootPort;              /* where ranks of several hosts meet; 0: no address is told */
  char rootHost[256];        /* cut where it is longer, as the next two; "": none is told */
  char launcher[16];         /* whose variables count, by its name for TUTTI_LAUNCHER: "openmpi", "none", … */
  char source[128];          /* these variables: "RANK/WORLD_SIZE" */
  char job[128];             /* what the launcher calls the job, and TUTTI_JOB; "": nothing */
} tuttiLaunch_t;
/* Reads the launcher's environment and joins nothing: for programs that tell others, as another library, who this
 * process is. Errors as tuttiCommInitEnv's: no launcher, half a set, contradictions, no place to meet. Any thread. */
TUTTI_API tuttiResult_t tuttiGetLaunch(tuttiLaunch_t* launch);

#define TUTTI_SPLIT_NOCOLOR (-1)
#define TUTTI_SPLIT_HOST (-2)
/* Collective: ranks with the same color form a new communicator, ordered by key, then by rank. With TUTTI_SPLIT_NOCOLOR
 * *child becomes NULL. With TUTTI_SPLIT_HOST ranks of one host, the same container if there are any, form one with
 * those there that give it too; apart from those with a color. `config` may be NULL: inherited. The child outlives its
 * parent. An error of one rank, also in its arguments, fails `comm` on all, which would wait for it; of a child that is
 * refused, or that a rank does not come to, its ranks hear together, and `comm` stays as it was.
 * With nonBlocking the child's handle comes back at once, and is used as tuttiCommInitRankConfig says. Until it is
 * made, or not, nobody may use `comm`: a call gets tuttiInvalidUsage, and tuttiCommGetAsyncError of `comm` gives
 * tuttiInProgress (which is all that a rank with TUTTI_SPLIT_NOCOLOR gets to see). To abort or revoke either ends it
 * soon, and as long as the other ranks would wait for this one it stops `comm`, so that they hear of it. */
TUTTI_API tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t* child,
                                       const tuttiConfig_t* config);

/* The survivors' way on after tuttiRemoteError: agrees with the others on who is still there, and makes a new
 * communicator of them, with ranks in the old order. Collective over the survivors; those that die meanwhile are left
 * out too. A rank that is alive but does not come is waited for: tuttiTimeout names it. One that waits with others
 * and gives up, by an abort or a revoke of its child, ends it for these: tuttiRemoteError. `comm` may have lost ranks,
 * been revoked, or be healthy, and is to be destroyed as ever. `config` may be NULL: inherited. Waits first for what is
 * queued on streams, which fails by itself once the communicator has. With nonBlocking as tuttiCommSplit.
 * `leftOut` points to `leftOutCount` ranks of comm, in any order, that stay behind though they may be alive; read
 * during the call. They do not call: one that does gets tuttiRemoteError, or tuttiInvalidArgument where it names
 * itself. NULL and 0: nobody is left out but the dead,
 * who are in any case. The same on every survivor: where lists differ, tuttiInvalidUsage on all, and `comm` stays as it
 * was. Of comm nothing changes for who was left out until the survivors destroy theirs. */
TUTTI_API tuttiResult_t tuttiCommShrink(tuttiComm_t comm, const int* leftOut, int leftOutCount, tuttiComm_t* child,
                                        const tuttiConfig_t* config, unsigned int flags);

/* Collective: a new communicator of all ranks with the same numbers, and with links of its own, so that what is called
 * on one never meets what is called on the other. `config`, errors and nonBlocking as tuttiCommSplit's. */
TUTTI_API tuttiResult_t tuttiCommDuplicate(tuttiComm_t comm, tuttiComm_t* child, const tuttiConfig_t* config);

/* As tuttiGetUniqueId, for one tuttiCommGrow of this communicator: called by one rank (any), which carries the bytes to
 * those who join, and gives them to tuttiCommGrow. The id expires config.joinTimeoutMs of `comm` after this call. */
TUTTI_API tuttiResult_t tuttiCommGetUniqueId(tuttiComm_t comm, tuttiUniqueId* id);
/* A new communicator of `ranks` ranks: all of comm, with their numbers, and others that join them. Collective of all of
 * these. Ranks of comm give it, and rank -1; one of them the id, the others NULL. Those who join give comm NULL, the
 * same id, and as rank one number each from the size of comm to ranks - 1. `ranks` is more than the size of comm, and
 * the same on all. `config` may be NULL: inherited by ranks of comm; for who joins as the environment says.
 * `comm` stays as it was, and usable, whatever becomes of this, but where one of its own ranks does not come, lacks
 * memory, gives up or dies, and, in a group, where an argument of one is wrong. Errors: an argument that is wrong on a
 * rank of comm is tuttiRemoteError on the others; tuttiInvalidUsage on all where `ranks` differ or are too few, or
 * where not exactly one rank of comm brings an id; tuttiRemoteError when a rank dies on the way; tuttiTimeout naming
 * those who did not come, as those who join with wrong arguments, of which only they are told. All who have come hear
 * of each, and why. The next attempt needs a new id. With nonBlocking as tuttiCommSplit. */
TUTTI_API tuttiResult_t tuttiCommGrow(tuttiComm_t comm, int ranks, const tuttiUniqueId* id, int rank,
                                      tuttiComm_t* child, const tuttiConfig_t* config);

/* Waits for the operations that were queued on streams. Each ends by itself: when it is done, with an error when a rank
 * that it waits for has left, or at its deadline. How they ended is not this call's result, nor tuttiCommDestroy's:
 * tuttiStreamSynchronize and tuttiCommGetAsyncError tell. A communicator made with config.nonBlocking does not wait
 * here: it comes back with tuttiInProgress while work is queued, and tuttiCommGetAsyncError gives tuttiInProgress until
 * that is done. Once more does no harm. NULL: tuttiSuccess, as of the next two. */
TUTTI_API tuttiResult_t tuttiCommFinalize(tuttiComm_t comm);
/* Finalizes, leaves in good order and frees. Does not wait for other ranks to do so (the end of the process may, ten
 * seconds at most, for ranks that reach the others through this one); for one that may never come to an operation
 * which is still queued, abort instead. The handle is invalid from then on: later use gets
 * tuttiInvalidArgument.
 * A process that returns from main or calls exit() leaves in good order what it has not destroyed: the others get an
 * error, which says so, where they wait for it or begin what needs it. Operations on host memory that are under way get
 * a second to end then; those that have not, and those on GPUs, are dropped. A process that ends otherwise has died. */
TUTTI_API tuttiResult_t tuttiCommDestroy(tuttiComm_t comm);
/* Stops everything at once: pending and later calls on all ranks fail. Then frees, as soon as no thread is inside.
 * Returns without waiting for any operation. Any thread. */
TUTTI_API tuttiResult_t tuttiCommAbort(tuttiComm_t comm);
/* Stops the work on all ranks: pending and later operations fail with tuttiRemoteError, which says who revoked. Nobody
 * is gone, and the communicator lives on for tuttiCommShrink, tuttiCommDump and tuttiCommDestroy. One that is still
 * made in the background is given up. Returns at once. Any thread. */
TUTTI_API tuttiResult_t tuttiCommRevoke(tuttiComm_t comm, unsigned int flags);
/* Writes this rank's record to a JSON file: who it is, what stopped it, its last 256 calls and how far each has come.
 * tutti-doctor compares the files of all ranks. Any thread, at any time until the communicator is destroyed. With
 * TUTTI_DUMP_DIR set, every failure after joining and SIGUSR2 write such files by themselves. */
TUTTI_API tuttiResult_t tuttiCommDump(tuttiComm_t comm, const char* path);
/* *result: tuttiSuccess, tuttiInProgress (it is joining, one is made of it in the background, or a tuttiCommFinalize
 * that did not wait is not done) or the error that stopped the communicator. Work that runs is success: tuttiCommIdle
 * and streams tell of that. Any thread. */
TUTTI_API tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t* result);
/* *idle: 1 when nothing is queued or running, also while it is joining; else 0. Any thread. */
TUTTI_API tuttiResult_t tuttiCommIdle(tuttiComm_t comm, int* idle);

TUTTI_API tuttiResult_t tuttiCommCount(tuttiComm_t comm, int* count);
TUTTI_API tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int* rank);
/* The CUDA device, or -1 for host memory. */
TUTTI_API tuttiResult_t tuttiCommDevice(tuttiComm_t comm, int* device);

/* What a communicator uses. Set `size` to sizeof(tuttiCommStats_t) before the call. In the struct of a newer header,
 * what this library does not know becomes 0, and `size` what it does know. Any thread, also while calls run. */
typedef struct {
  size_t size;
  uint64_t memoryBytes; /* FIFOs (a shared region counts half at each end), schedules, scratch */
  uint64_t connectedPeers;
  uint64_t operations;     /* calls completed */
  char lastAlgorithm[16];  /* of the last collective: "ring", … */
  char lastTransports[32]; /* of its links: "shm", "shm,tcp", … */
  uint64_t directSlots; /* pieces of messages that peers or devices read from, or on GPUs wrote to, a buffer in place */
  uint64_t bytes;       /* of the calls completed: their counts, as this rank gave them, in bytes */
  uint64_t nanoseconds; /* from each of these calls, or from its start, to its end; calls that overlap count twice */
} tuttiCommStats_t;
TUTTI_API tuttiResult_t tuttiCommGetStats(tuttiComm_t comm, tuttiCommStats_t* stats);
/* nanoseconds[r]: how long calls of this rank have waited for rank r. Noted now and then while a call waits: waits of
 * less than some tenth of a millisecond are mostly left out. On GPUs 0. `ranks`: the entries, one a rank of the
 * communicator. Any thread, also while calls run. */
TUTTI_API tuttiResult_t tuttiCommGetWaits(tuttiComm_t comm, uint64_t* nanoseconds, int ranks);

/* How the communicator would run a collective of `count` elements (as its call counts them), and why: writes lines of
 * text to `text`, cut at `room` bytes with the final 0. On the host the first line is the choice, "chosen: ring over 1
 * channel, predicted 12.3 us"; then come "next: …", the others from the cheapest on, and "not: tree: …", what was left
 * out with the reason; "link: shm to 3 ranks of this host, …", to whom this rank goes by what, by what prices and from
 * where, and why not by something faster; the last line, "prices: …", says whether the predictions go by the prices
 * that the library ships with or by a profile (TUTTI_PROFILE). On GPUs lines are alike. `collective` is its name in
 * error texts: "all-reduce", "all-gather", "barrier"; a v-variant runs as the plain one. Runs nothing, and needs no
 * other rank. */
TUTTI_API tuttiResult_t tuttiCommExplain(tuttiComm_t comm, const char* collective, size_t count, tuttiDataType_t type,
                                         char* text, size_t room);
/* The same as JSON; docs/json.md has its keys. `length`, which may be NULL, gets what it takes without its final 0.
 * tuttiInvalidArgument where `room` is not more than that: then nothing is written. With json NULL, which asks for the
 * length, `room` does not count. */
TUTTI_API tuttiResult_t tuttiCommExplainJson(tuttiComm_t comm, const char* collective, size_t count,
                                             tuttiDataType_t type, char* json, size_t room, size_t* length);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Memory that peers on the same host map: long messages in it are read in place by collectives on the host, on every
 * communicator and without registration, whatever memory the peers have. Page aligned, zeroed. Its pages are to stay
 * what they are: peers read them, whatever the program maps there. */
TUTTI_API tuttiResult_t tuttiMemAlloc(void** pointer, size_t bytes);
/* The same on a GPU, by its number in this process; -1: host memory, as tuttiMemAlloc. By virtual memory management
 * where the GPU has it: then it can be shared with other processes by a descriptor, and every GPU of this process that
 * reaches that one may use it. Zeroed. */
TUTTI_API tuttiResult_t tuttiMemAllocDevice(void** pointer, size_t bytes, int device, unsigned int flags);
/* Of both. Nothing that uses the memory may be under way. */
TUTTI_API tuttiResult_t tuttiMemFree(void* pointer);
/* Tells the communicator about a buffer that will be used often. Local: the other ranks need not do the same, and
 * correctness never depends on it. On the host, RDMA sends long messages out of it, as out of memory of tuttiMemAlloc,
 * instead of through slots (docs/verbs.md). On a GPU, other ranks then read operands in it, and write results to it, in
 * place instead of through slots; an operation ends when they have. Those of the process do so at once; those of other
 * processes map it first, in the background, which is possible for memory of tuttiMemAllocDevice, or of the driver's
 * virtual memory management made to be shared; it remains in use on the GPU until they have unmapped it again. It must
 * stay allocated until it is deregistered, which is when no call that uses it is under way. */
TUTTI_API tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void* buffer, size_t bytes, void** handle,
                                          unsigned int flags);
TUTTI_API tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void* handle);

/* ---- Operators --------------------------------------------------------------------------------------------------- */

/* An operator that multiplies each rank's input by its own scalar (a value of `type`) and adds. On a GPU with
 * tuttiScalarDevice, `scalar` is memory of that GPU, which is read whenever an operation runs; else the scalar is read
 * during this call. Destroy it after the last operation that uses it was called. */
TUTTI_API tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t* op, void* scalar, tuttiDataType_t type,
                                                  tuttiScalarResidence_t residence, tuttiComm_t comm);
TUTTI_API tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* recv[i] = op over ranks of send[i], i < count, on every rank. */
TUTTI_API tuttiResult_t tuttiAllReduce(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                       tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);
/* recv[i] = the root's send[i]. Only the root's send is read. Its root may return before the others have called, or
 * wait until they have read: which of the two may differ from call to call. */
TUTTI_API tuttiResult_t tuttiBroadcast(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                       tuttiComm_t comm, tuttiStream_t stream);
/* As all-reduce, at the root only. Only the root's recv is written. */
TUTTI_API tuttiResult_t tuttiReduce(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                                    int root, tuttiComm_t comm, tuttiStream_t stream);
/* recv[r * count + i] = rank r's send[i]; recv holds ranks * count elements. */
TUTTI_API tuttiResult_t tuttiAllGather(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                       tuttiComm_t comm, tuttiStream_t stream);
/* recv[i] = op over ranks of send[rank * count + i]; send holds ranks * count elements. */
TUTTI_API tuttiResult_t tuttiReduceScatter(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                           tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream);
/* As all-gather, at the root only. */
TUTTI_API tuttiResult_t tuttiGather(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                    tuttiComm_t comm, tuttiStream_t stream);
/* recv[i] = the root's send[rank * count + i]. */
TUTTI_API tuttiResult_t tuttiScatter(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                     tuttiComm_t comm, tuttiStream_t stream);
/* recv[r * count + i] = rank r's send[rank * count + i]; both hold ranks * count elements. In place where send ==
 * recv. */
TUTTI_API tuttiResult_t tuttiAllToAll(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                      tuttiComm_t comm, tuttiStream_t stream);

/* The v-variants: a count for each rank. Displacements are elements from the start of the buffer. The arrays have one
 * entry a rank, are read during the call, and for all-gather-v and reduce-scatter-v are the same on every rank. In an
 * all-to-all-v, a gather-v and a scatter-v each rank expects of every other what that one sends it; where they differ,
 * tuttiInvalidUsage comes from this call or, for whoever has what it expects, from a later one. The parts of a receive
 * buffer may not overlap. */
TUTTI_API tuttiResult_t tuttiAllGatherV(const void* send, void* recv, const size_t* recvCounts,
                                        const size_t* recvDispls, tuttiDataType_t type, tuttiComm_t comm,
                                        tuttiStream_t stream);
/* The send buffer holds the segments one after the other, without gaps. */
TUTTI_API tuttiResult_t tuttiReduceScatterV(const void* send, void* recv, const size_t* recvCounts,
                                            tuttiDataType_t type, tuttiRedOp_t op, tuttiComm_t comm,
                                            tuttiStream_t stream);
/* In place where send == recv: then the tables of both sides are equal on this rank. */
TUTTI_API tuttiResult_t tuttiAllToAllV(const void* send, const size_t* sendCounts, const size_t* sendDispls, void* recv,
                                       const size_t* recvCounts, const size_t* recvDispls, tuttiDataType_t type,
                                       tuttiComm_t comm, tuttiStream_t stream);

/* Each rank gives its own part and the count of that. Only the root's recv is written, and only its recvCounts and
 * recvDispls are read; its own entry is its sendCount. */
TUTTI_API tuttiResult_t tuttiGatherV(const void* send, size_t sendCount, void* recv, const size_t* recvCounts,
                                     const size_t* recvDispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                                     tuttiStream_t stream);
/* The other way: only the root's send, sendCounts and sendDispls are read; its own entry is its recvCount. Parts of its
 * send buffer may overlap. */
TUTTI_API tuttiResult_t tuttiScatterV(const void* send, const size_t* sendCounts, const size_t* sendDispls, void* recv,
                                      size_t recvCount, tuttiDataType_t type, int root, tuttiComm_t comm,
                                      tuttiStream_t stream);

/* A message to, and from, another rank (or oneself: then both calls are in one group, or tuttiInvalidUsage). Messages
 * between two ranks match in the order of the calls; counts and types must be equal. Calls in one group run side by
 * side, in no order. */
TUTTI_API tuttiResult_t tuttiSend(const void* send, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                                  tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiRecv(void* recv, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                                  tuttiStream_t stream);
/* Returns (or, on a stream, is done) when every rank has called it. */
TUTTI_API tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream);

/* ---- Calls with a configuration of their own --------------------------------------------------------------------- */

/* flags: the call is not run but made ready, for tuttiRequestStart. */
#define TUTTI_CALL_PERSISTENT 1u

/* What one call is to have that others have not. Set size and version with TUTTI_CALL_CONFIG_INITIALIZER; every other
 * field's zero means that the call is as any other. Sizes and reserved fields are as in tuttiConfig_t. The same on
 * every rank must be channels, algorithm, reproducible, tag, and whether the call is persistent: tuttiInvalidUsage
 * where the tag differs, what is chosen by the rest, or on the host whether it is persistent (on GPUs the order of
 * calls alone counts, of which making one ready is none there). It comes from this call or, for whoever only sends in
 * it, from a later one. The environment wins here as well: TUTTI_ALGO, TUTTI_CHANNELS, TUTTI_REPRODUCIBLE and
 * TUTTI_OPERATION_TIMEOUT_MS, where set, are for all calls; the first two for those of the operations that they name,
 * where they name some. */
typedef struct {
  size_t size;
  unsigned int version;
  int channels;            /* as in tuttiConfig_t, for this call; not of a send or receive */
  const char* algorithm;   /* the same, of one operation: "ring", "tree,ring", "^oneshot". One at least that the
                              collective has, or tuttiInvalidArgument. NULL, "": none */
  int reproducible;        /* as in tuttiConfig_t, for this call; 0: as the communicator has it */
  unsigned int flags;      /* 0 or TUTTI_CALL_PERSISTENT */
  uint64_t tag;            /* the caller's own meaning; shown in error texts and records of the call. 0: none */
  tuttiRequest_t* request; /* not NULL: gets a handle for this operation where the call succeeds, else NULL. To be freed
                              by tuttiRequestFree */
  int timeoutMs;           /* as operationTimeoutMs in tuttiConfig_t, for this call and each of its starts; counts from
                              when its turn has come. May differ by rank: the communicator fails on all ranks when the
                              first has passed. 0: as the communicator has it. Not on GPUs: tuttiInvalidArgument */
  int reserved0;
} tuttiCallConfig_t;

#define TUTTI_CALL_CONFIG_INITIALIZER \
  { sizeof(tuttiCallConfig_t), TUTTI_VERSION_CODE, 0, NULL, 0, 0, 0, NULL, 0, 0 }

/* Every operation has a twin that takes such a configuration as its last argument; NULL is the plain call. */
TUTTI_API tuttiResult_t tuttiAllReduceConfig(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                             tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream,
                                             const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiBroadcastConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                             tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiReduceConfig(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                          tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream,
                                          const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiAllGatherConfig(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                             tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiReduceScatterConfig(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                                 tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream,
                                                 const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiGatherConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                          tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiScatterConfig(const void* send, void* recv, size_t count, tuttiDataType_t type, int root,
                                           tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiAllToAllConfig(const void* send, void* recv, size_t count, tuttiDataType_t type,
                                            tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiAllGatherVConfig(const void* send, void* recv, const size_t* recvCounts,
                                              const size_t* recvDispls, tuttiDataType_t type, tuttiComm_t comm,
                                              tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiReduceScatterVConfig(const void* send, void* recv, const size_t* recvCounts,
                                                  tuttiDataType_t type, tuttiRedOp_t op, tuttiComm_t comm,
                                                  tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiAllToAllVConfig(const void* send, const size_t* sendCounts, const size_t* sendDispls,
                                             void* recv, const size_t* recvCounts, const size_t* recvDispls,
                                             tuttiDataType_t type, tuttiComm_t comm, tuttiStream_t stream,
                                             const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiGatherVConfig(const void* send, size_t sendCount, void* recv, const size_t* recvCounts,
                                           const size_t* recvDispls, tuttiDataType_t type, int root, tuttiComm_t comm,
                                           tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiScatterVConfig(const void* send, const size_t* sendCounts, const size_t* sendDispls,
                                            void* recv, size_t recvCount, tuttiDataType_t type, int root,
                                            tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiSendConfig(const void* send, size_t count, tuttiDataType_t type, int peer,
                                        tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiRecvConfig(void* recv, size_t count, tuttiDataType_t type, int peer, tuttiComm_t comm,
                                        tuttiStream_t stream, const tuttiCallConfig_t* config);
TUTTI_API tuttiResult_t tuttiBarrierConfig(tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);

/* A request tells of one operation: on a stream or in a group it is under way until that operation has ended, whatever
 * else the stream has to do; with a NULL stream of a communicator on the host, outside of a group, it has ended when
 * the call returns. What an operation on a GPU could not end is known soon after, and it counts as failed where the
 * communicator fails in that moment. None is given of what a CUDA graph captures: tuttiInvalidUsage. Any thread may ask
 * and wait, also after the communicator's end. */
/* tuttiSuccess, tuttiInProgress, or the error of the operation, of which tuttiGetLastError tells. In an open group that
 * has collected the call it stays at tuttiInProgress. */
TUTTI_API tuttiResult_t tuttiRequestTest(tuttiRequest_t request);
/* Waits until it has ended, which the deadline of the operation sees to once it runs, and returns its result.
 * tuttiInvalidUsage in the group of the calling thread that has collected the call: it runs when that ends. */
TUTTI_API tuttiResult_t tuttiRequestWait(tuttiRequest_t request);
/* Runs a persistent call once more, with the same arguments, on the same stream, or with a NULL stream in the calling
 * thread to its end; in a group it is collected as a call is. It is a call in the order of calls, as is making it
 * ready, and can be made from when the call that made the request has returned. tuttiInvalidUsage while it runs still.
 * Buffers must stay where they are until the request is freed. So must a stream of CUDA's; one of tuttiStreamCreate's
 * that is destroyed goes on with what the request starts until that is freed, which then waits for what runs there. */
TUTTI_API tuttiResult_t tuttiRequestStart(tuttiRequest_t request);
/* At any time, also before the operation has ended, which then goes on, and after the communicator's end. */
TUTTI_API tuttiResult_t tuttiRequestFree(tuttiRequest_t request);

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* Calls between the two are collected and run together at the outer tuttiGroupEnd, which reports the first error.
 * So are the calls that make communicators: one thread may make several ranks of one. Each returns tuttiSuccess and
 * sets its handle, which may be aborted, but not used until the group has ended. tuttiGroupEnd makes them side by side,
 * each on a thread of its own, waits for those that are not nonBlocking, and then runs the operations; its error names
 * the call, and each communicator has its own text. tuttiInProgress: nothing is wrong, and nonBlocking ones go on.
 * Where a call of the group was refused, nothing is made: the handles are to be destroyed or aborted; and the other
 * ranks wait for this one, which may call again. Of what a communicator is made in a group, no operations can be in it:
 * tuttiInvalidUsage. Everything else runs at once. */
TUTTI_API tuttiResult_t tuttiGroupStart(void);
TUTTI_API tuttiResult_t tuttiGroupEnd(void);

/* ---- Streams for host communicators ------------------------------------------------------------------------------ */

TUTTI_API tuttiResult_t tuttiStreamCreate(tuttiStream_t* stream, unsigned int flags);
/* Waits for what is queued, and frees in any case; returns what tuttiStreamSynchronize would. */
TUTTI_API tuttiResult_t tuttiStreamDestroy(tuttiStream_t stream);
/* Waits until the queue is empty; returns the first error of an operation since the last call. */
TUTTI_API tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream);
/* tuttiSuccess when the queue is empty, tuttiInProgress when not. */
TUTTI_API tuttiResult_t tuttiStreamQuery(tuttiStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
