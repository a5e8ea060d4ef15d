// Communicators through the C API for tests: n ranks as threads of this process, each with a communicator of its own.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/patience.h"
#include "support/run_ranks.h"
#include "tutti/tutti.h"

namespace tutti::test {

inline void check(tuttiResult_t result, const char* call, tuttiComm_t comm = nullptr) {
  if (result != tuttiSuccess) {
    std::string text = std::string(call) + ": " + tuttiGetErrorString(result) + ": ";
    text += tuttiGetLastError(comm);  // by itself: the next one ends it
    throw std::runtime_error(text + tuttiGetLastError(nullptr));
  }
}
#define CHECK_TUTTI(call) ::tutti::test::check(call, #call)

// Every test that uses this has a deadline of its own: an operation that would hang fails instead.
inline tuttiConfig_t testConfig() {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.joinTimeoutMs = config.operationTimeoutMs = static_cast<int>(longWait().count());
  return config;
}

inline tuttiConfig_t inBackground() {
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  return config;
}

// Of what is made, or finalised, in the background: when it is over.
inline tuttiResult_t outcomeOf(tuttiComm_t comm) {
  tuttiResult_t state = tuttiInProgress;
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
    if (state != tuttiInProgress) return state;
  }
}

template <class Body>
void withCommunicators(int ranks, const tuttiConfig_t& config, Body body) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  runRanks(ranks, [&](int rank) {
    tuttiComm_t comm = nullptr;
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm, ranks, id, rank, &config));
    struct Destroyer {
      tuttiComm_t comm;
      ~Destroyer() { tuttiCommDestroy(comm); }
    } destroyer{comm};
    body(comm, rank);
  });
}

// That of the last call.
inline std::string lastAlgorithm(tuttiComm_t comm) {
  tuttiCommStats_t stats{};
  stats.size = sizeof stats;
  CHECK_TUTTI(tuttiCommGetStats(comm, &stats));
  return stats.lastAlgorithm;
}

// How it would run that collective of so many floats.
inline std::string explained(tuttiComm_t comm, const char* collective, size_t count) {
  std::vector<char> text(8192);
  CHECK_TUTTI(tuttiCommExplain(comm, collective, count, tuttiFloat32, text.data(), text.size()));
  return text.data();
}

// The same as JSON.
inline std::string explainedJson(tuttiComm_t comm, const char* collective, size_t count) {
  size_t length = 0;
  CHECK_TUTTI(tuttiCommExplainJson(comm, collective, count, tuttiFloat32, nullptr, 0, &length));
  std::string text(length + 1, '\0');
  CHECK_TUTTI(tuttiCommExplainJson(comm, collective, count, tuttiFloat32, text.data(), text.size(), nullptr));
  text.pop_back();
  return text;
}

}  // namespace tutti::test
