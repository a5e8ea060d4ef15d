/* The example's transport, and what goes wrong with one: TROUBLE says what, on the rank that TROUBLE_RANK says (all).
 */
#define tuttiTransportEntry exampleEntry
#include "../../examples/04_transport.c"
#undef tuttiTransportEntry

static int isTrouble(const char* what) {
  const char *trouble = getenv("TROUBLE"), *only = getenv("TROUBLE_RANK"), *rank = getenv("TUTTI_RANK");
  if (trouble == NULL || strcmp(trouble, what) != 0) return 0;
  return only == NULL || (rank != NULL && strcmp(only, rank) == 0);
}

static int troubleUsable(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room) {
  (void)self, (void)settings;
  if (!isTrouble("lack")) return 1;
  snprintf(text, room, "its network is not plugged in");
  return 0;
}

static void* troubleOpen(const tuttiTransportEdge* edge, const tuttiTransportLine* line, char* text, size_t room) {
  if (!isTrouble("open")) return exampleOpen(edge, line, text, room);
  snprintf(text, room, "no room for another link");
  return NULL;
}

/* More than the line takes. */
static void chatter(Connection* c) {
  static const char blob[70000];
  c->line.put(c->line.line, blob, sizeof blob);
}

static tuttiTransportProgress troubleConnect(void* connection) {
  Connection* c = connection;
  if (isTrouble("chatter")) chatter(c);
  if (isTrouble("stall")) return tuttiTransportIdle;
  if (isTrouble("refuse")) return (tuttiTransportProgress)fail(c, "was refused", ECONNREFUSED);
  return exampleConnect(connection);
}

/* One byte of each long payload arrives as another. */
static tuttiTransportProgress troubleProgress(void* connection) {
  Connection* c = connection;
  const uint64_t before = c->received;
  const tuttiTransportProgress moved = exampleProgress(connection);
  if (isTrouble("garble"))
    for (uint64_t slot = before; slot < c->received; ++slot) {
      const tuttiSlotHeader* header = &c->edge.recv.headers[slot & (c->edge.recv.depth - 1)];
      if (header->bytes > TUTTI_INLINE_BYTES) *payloadOf(&c->edge.recv, slot, header->bytes) ^= 1;
    }
  if (isTrouble("lose") && c->received > 1) return (tuttiTransportProgress)fail(c, "was cut", 0);
  return moved;
}

static const tuttiTransport kTrouble = {
    .abi = TUTTI_TRANSPORT_ABI,
    .name = "trouble",
    .latencyUs = 0.01, /* the first choice */
    .bandwidthGBs = 100,
    .usable = troubleUsable,
    .open = troubleOpen,
    .connect = troubleConnect,
    .progress = troubleProgress,
    .sending = exampleSending,
    .interest = exampleInterest,
    .error = exampleError,
    .close = exampleClose,
};

const tuttiTransport* tuttiTransportEntry(const tuttiTransportHost* host, char* text, size_t room) {
  return exampleEntry(host, text, room) != NULL ? &kTrouble : NULL;
}
