// Ranks of a control plane as threads, for the tests.
#pragma once
#include <dirent.h>
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "control/plane.h"
#include "join/open_root.h"
#include "process/fd.h"
#include "support/free_port.h"
#include "support/join_plane.h"
#include "support/patience.h"

namespace tutti::control::test {

inline Deadline soon() { return Deadline::in(3 * tutti::test::longWait()); }

using tutti::test::freePort;

inline Bytes toBytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(data, data + text.size());
}
inline std::string toText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline JoinRequest requestFor(const UniqueId& id, int rank, int size, Deadline deadline = soon(),
                              const Network& network = {}) {
  JoinRequest request;
  request.id = id;
  request.rank = rank;
  request.size = size;
  request.info = toBytes("card of " + std::to_string(rank));
  request.network = network;
  request.deadline = deadline;
  return request;
}

// Runs `body(i)` on n threads; what they throw fails the test.
inline void inThreads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&body, i] {
      try {
        body(i);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "thread " << i << ": " << e.what();
      }
    });
  for (auto& thread : threads) thread.join();
}

// All ranks of one job, joined; `adjust` may change what each asks for.
using Adjust = std::function<void(JoinRequest&)>;
inline std::vector<std::shared_ptr<Plane>> joinAll(int size, const Network& network, const Adjust& adjust) {
  const UniqueId id = decode(encode(openRoot(network, soon())));
  std::vector<std::shared_ptr<Plane>> planes(static_cast<size_t>(size));
  inThreads(size, [&](int r) {
    JoinRequest request = requestFor(id, r, size, soon(), network);
    if (adjust) adjust(request);
    planes[size_t(r)] = joinPlane(request);
  });
  return planes;
}
inline std::vector<std::shared_ptr<Plane>> joinAll(int size, const Network& network = {}) {
  return joinAll(size, network, {});
}
inline std::vector<std::shared_ptr<Plane>> joinAll(int size, const Adjust& adjust) { return joinAll(size, {}, adjust); }

// The Error that `body` throws, as code and text; fails the test when it throws none.
struct Thrown {
  int code = 0;
  std::string text;
};
inline Thrown thrownBy(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return {static_cast<int>(e.code()), e.what()};
  }
  return {};
}
inline int codeOf(ErrorCode code) { return static_cast<int>(code); }

// Looks until `look` gives a value.
template <class Look>
auto awaitFrom(Look look, Deadline deadline = soon()) {
  for (;; std::this_thread::sleep_for(std::chrono::microseconds(100))) {
    auto found = look();
    if (found || deadline.passed()) return found;
  }
}
inline Bytes awaitMail(Plane& plane, int from, uint64_t key) {
  return awaitFrom([&] { return plane.poll(from, key); }).value();
}
inline UniqueFd awaitStream(Plane& plane, int peer, uint64_t key) {
  return std::move(awaitFrom([&] { return plane.pollStream(peer, key); })->fd);
}

inline int countEntries(const char* folder) {
  int count = 0;
  DIR* dir = ::opendir(folder);
  while (dir != nullptr && ::readdir(dir) != nullptr) ++count;
  if (dir != nullptr) ::closedir(dir);
  return count;
}
inline int openDescriptors() { return countEntries("/proc/self/fd"); }
inline int runningThreads() { return countEntries("/proc/self/task"); }

}  // namespace tutti::control::test
