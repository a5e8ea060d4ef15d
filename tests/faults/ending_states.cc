#include "faults/ending_states.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "tutti/tutti.h"

namespace {

struct Pair {
  std::array<tuttiComm_t, 2> ranks{};
};

// What the threads of these states use lives on, as a program's static objects may not.
Pair makePair() {
  Pair made;
  tuttiUniqueId id;
  if (tuttiGetUniqueId(&id) != tuttiSuccess) return made;
  std::thread other([&] { tuttiCommInitRank(&made.ranks[1], 2, id, 1); });
  tuttiCommInitRank(&made.ranks[0], 2, id, 0);
  other.join();
  return made;
}

// A page for each thread that nothing gives back: a stream may come to it when this program's code has gone.
float* lastingValue() {
  static thread_local void* const page =
      ::mmap(nullptr, sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<float*>(page);
}

tuttiResult_t addUp(tuttiComm_t comm, tuttiStream_t stream) {
  float* const value = lastingValue();
  return tuttiAllReduce(value, value, 1, tuttiFloat32, tuttiSum, comm, stream);
}

// The same with links between them.
Pair makeLinked() {
  const Pair pair = makePair();
  std::thread other([&] { addUp(pair.ranks[1], nullptr); });
  addUp(pair.ranks[0], nullptr);
  other.join();
  return pair;
}

// A thread that is given the time to get to where it blocks.
template <class Body>
void leaveRunning(Body body) {
  std::thread(body).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void joinAlone(int nonBlocking) {
  tuttiUniqueId id;
  tuttiGetUniqueId(&id);
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = nonBlocking;
  tuttiComm_t comm = nullptr;
  tuttiCommInitRankConfig(&comm, 2, id, 0, &config);
}

void joinWithoutId() {
  ::setenv("TUTTI_RANK", "1", 1);
  ::setenv("TUTTI_SIZE", "2", 1);
  ::setenv("TUTTI_ID_FILE", "/nowhere/that/a/file/comes", 1);
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = 1;
  tuttiComm_t comm = nullptr;
  tuttiCommInitEnv(&comm, &config);
}

void split() {
  leaveRunning([pair = makeLinked()] {
    tuttiComm_t made = nullptr;
    tuttiCommSplit(pair.ranks[0], 0, 0, &made, nullptr);
  });
}

void fail() {
  const Pair pair = makeLinked();
  std::thread waiting([pair] { addUp(pair.ranks[0], nullptr); });
  tuttiCommAbort(pair.ranks[1]);
  waiting.join();
}

void shrink() {
  const Pair pair = makeLinked();
  tuttiCommRevoke(pair.ranks[0], 0);
  leaveRunning([pair] {
    tuttiComm_t made = nullptr;
    tuttiCommShrink(pair.ranks[0], nullptr, 0, &made, nullptr, 0);
  });
}

tuttiConfig_t inBackground() {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = 1;
  return config;
}

void splitInBackground() {
  const Pair pair = makeLinked();
  const tuttiConfig_t config = inBackground();
  tuttiComm_t made = nullptr;
  tuttiCommSplit(pair.ranks[0], 0, 0, &made, &config);
}

void shrinkInBackground() {
  const Pair pair = makeLinked();
  const tuttiConfig_t config = inBackground();
  tuttiCommRevoke(pair.ranks[0], 0);
  tuttiComm_t made = nullptr;
  tuttiCommShrink(pair.ranks[0], nullptr, 0, &made, &config, 0);
}

void fillGroup(tuttiComm_t parent) {
  tuttiUniqueId id;
  tuttiGetUniqueId(&id);
  tuttiComm_t joining = nullptr, child = nullptr;
  tuttiGroupStart();
  tuttiCommInitRank(&joining, 2, id, 0);
  tuttiCommSplit(parent, 0, 0, &child, nullptr);
}

void endGroup() {
  leaveRunning([pair = makeLinked()] {
    fillGroup(pair.ranks[0]);
    tuttiGroupEnd();
  });
}

void destroy() {
  const Pair pair = makeLinked();
  for (const tuttiComm_t comm : pair.ranks) tuttiCommDestroy(comm);
}

void queueAlone() {
  const Pair pair = makeLinked();
  tuttiStream_t stream = nullptr;
  tuttiStreamCreate(&stream, 0);
  addUp(pair.ranks[0], stream);
}

// What streams work on when the process ends: the memory goes when this does.
struct LateBuffers {
  static constexpr size_t kBytes = 8 << 20;
  std::array<void*, 2> memory{};
  pid_t process = -1;
  ~LateBuffers() {
    for (void* one : memory)
      if (process == ::getpid()) ::munmap(one, kBytes);
  }
} lateBuffers;

void workOnLateBuffers() {
  const Pair pair = makeLinked();
  lateBuffers.process = ::getpid();
  for (size_t rank = 0; rank < 2; ++rank) {
    void*& memory = lateBuffers.memory[rank];
    memory =
        ::mmap(nullptr, LateBuffers::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    tuttiStream_t stream = nullptr;
    tuttiStreamCreate(&stream, 0);
    for (int i = 0; i < 10; ++i)
      tuttiAllReduce(memory, memory, LateBuffers::kBytes / sizeof(float), tuttiFloat32, tuttiSum, pair.ranks[rank],
                     stream);
  }
}

void runOn() {
  const Pair pair = makeLinked();
  for (const tuttiComm_t comm : pair.ranks)
    leaveRunning([comm] {
      while (addUp(comm, nullptr) == tuttiSuccess) {
      }
    });
}

// Communicators of a static object leave when that goes, in good order: the one that leaves last has heard nothing of a
// failure. In a forked child they are its parent's.
struct Late {
  Pair pair;
  pid_t process = -1;
  ~Late() {
    if (process != ::getpid()) return;
    tuttiResult_t heard = tuttiSuccess;
    if (tuttiCommDestroy(pair.ranks[0]) != tuttiSuccess ||
        tuttiCommGetAsyncError(pair.ranks[1], &heard) != tuttiSuccess || heard != tuttiSuccess ||
        tuttiCommDestroy(pair.ranks[1]) != tuttiSuccess)
      ::_exit(97);
  }
} late;

void leaveToAStaticObject() {
  late.pair = makeLinked();
  late.process = ::getpid();
}

constexpr struct {
  std::string_view name;
  void (*enter)();
} kStates[] = {
    {"idle", [] { makePair(); }},
    {"joining in the background", [] { joinAlone(1); }},
    {"joining where the id file does not come", joinWithoutId},
    {"joining", [] { leaveRunning([] { joinAlone(0); }); }},
    {"waiting for a link", [] { leaveRunning([pair = makePair()] { addUp(pair.ranks[0], nullptr); }); }},
    {"at rest after a call", [] { makeLinked(); }},
    {"waiting", [] { leaveRunning([pair = makeLinked()] { addUp(pair.ranks[0], nullptr); }); }},
    {"waiting in a stream", queueAlone},
    {"at work in streams on what a static object frees", workOnLateBuffers},
    {"running", runOn},
    {"splitting", split},
    {"failed", fail},
    {"shrinking", shrink},
    {"splitting in the background", splitInBackground},
    {"shrinking in the background", shrinkInBackground},
    {"in a group", [] { fillGroup(makeLinked().ranks[0]); }},
    {"ending a group", endGroup},
    {"destroyed", destroy},
    {"held by a static object", leaveToAStaticObject},
};

}  // namespace

bool enterState(const char* name) {
  for (const auto& state : kStates)
    if (state.name == name) {
      state.enter();
      return true;
    }
  return false;
}

const char* tryLibrary() {
  tuttiGroupEnd();  // a forked child's thread is in the group that its parent's was in, but what that makes is not its
                    // own
  const Pair pair = makePair();
  if (pair.ranks[0] == nullptr || pair.ranks[1] == nullptr) return "the ranks do not join";
  tuttiResult_t there = tuttiSuccess;
  std::thread other([&] { there = addUp(pair.ranks[1], nullptr); });
  const tuttiResult_t here = addUp(pair.ranks[0], nullptr);
  other.join();
  if (here != tuttiSuccess || there != tuttiSuccess) return "an all-reduce fails";
  for (const tuttiComm_t comm : pair.ranks)
    if (tuttiCommDestroy(comm) != tuttiSuccess) return "a communicator cannot be destroyed";
  return nullptr;
}
