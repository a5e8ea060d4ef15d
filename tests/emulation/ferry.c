/* The example's transport as one that reaches the memory of GPUs, which on the emulated ones any transport does. What
 * FERRY says goes wrong. */
#define tuttiTransportEntry exampleEntry
#include "../../examples/04_transport.c"
#undef tuttiTransportEntry

static int isTrouble(const char* what) {
  const char* const trouble = getenv("FERRY");
  return trouble != NULL && strcmp(trouble, what) == 0;
}

static int reachesGpu(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room) {
  (void)settings;
  if (!isTrouble("lack") && self->device >= 0) return 1;
  snprintf(text, room, "its cable does not go to GPU %d", (int)self->device);
  return 0;
}

/* Hosts by name alone. */
static void* ferryOpen(const tuttiTransportEdge* edge, const tuttiTransportLine* line, char* text, size_t room) {
  tuttiTransportEdge near = *edge;
  near.peer.hostId = near.self.hostId;
  if (near.gpuSlots.begin == NULL || !isTrouble("refuse")) return exampleOpen(&near, line, text, room);
  snprintf(text, room, "%zu bytes of the GPU's memory cannot be registered", near.gpuSlots.bytes);
  return NULL;
}

/* No slot that has come is shown before the GPU sees it. */
static tuttiTransportProgress ferryProgress(void* connection) {
  Connection* c = connection;
  const tuttiTransportGpuSlots* slots = &c->edge.gpuSlots;
  if (slots->flush != NULL && (isTrouble("flush") || slots->flush(slots->with) != 0))
    return (tuttiTransportProgress)fail(c, "cannot flush the GPU", 0);
  return exampleProgress(connection);
}

static const tuttiTransport kFerry = {
    .abi = TUTTI_TRANSPORT_ABI,
    .name = "ferry",
    .latencyUs = 0.01, /* the first choice */
    .bandwidthGBs = 100,
    .usable = exampleUsable,
    .open = ferryOpen,
    .connect = exampleConnect,
    .progress = ferryProgress,
    .sending = exampleSending,
    .interest = exampleInterest,
    .error = exampleError,
    .close = exampleClose,
    .reachesGpu = reachesGpu,
};

const tuttiTransport* tuttiTransportEntry(const tuttiTransportHost* host, char* text, size_t room) {
  return exampleEntry(host, text, room) != NULL ? &kFerry : NULL;
}
