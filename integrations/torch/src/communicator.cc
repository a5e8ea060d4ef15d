#include "communicator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include "errors.h"

namespace tutti_torch {
namespace {

constexpr uint8_t kGood = 0, kBad = 1;  // what follows in the answer of rank 0: the id, or why there is none

constexpr milliseconds kHearing(5'000);  // what is wrong is heard at once, by a process that is not held up

std::string presence(int rank) { return "here/" + std::to_string(rank); }
std::string hearing(int rank) { return "heard/" + std::to_string(rank); }

std::string missingOf(c10d::Store& store, int size) {
  std::string names;
  for (int rank = 1; rank < size; ++rank)
    if (!store.check({presence(rank)})) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  return names;
}

// Why the group cannot be made; empty when all have come.
std::string waitForAll(c10d::Store& store, int size, milliseconds timeout, const Stopped& stopped) {
  std::vector<std::string> keys;
  for (int rank = 1; rank < size; ++rank) keys.push_back(presence(rank));
  if (awaitKeys(store, keys, timeout, stopped)) return "";
  const std::string missing = missingOf(store, size);
  if (missing.empty()) return "";
  return "these ranks did not come to make the group within " + std::to_string(timeout.count()) + " ms: " + missing +
         " (of " + std::to_string(size) + ")";
}

template <class Bytes>
void answerAll(c10d::Store& store, uint8_t kind, const Bytes& bytes) {
  std::vector<uint8_t> answer(bytes.begin(), bytes.end());
  answer.insert(answer.begin(), kind);
  store.set("id", answer);
}

// With rank 0 the Store may go, and with it what it has to say: so it stays until those who have come have heard it.
void tellAll(c10d::Store& store, int size, const std::string& why, const Stopped& stopped) {
  answerAll(store, kBad, why);
  std::vector<std::string> heard;
  for (int rank = 1; rank < size; ++rank)
    if (store.check({presence(rank)})) heard.push_back(hearing(rank));
  awaitKeys(store, heard, kHearing, stopped);
}

tuttiUniqueId offerId(c10d::Store& store, int size, milliseconds timeout, const Stopped& stopped) {
  try {
    if (const std::string why = waitForAll(store, size, timeout, stopped); !why.empty()) fail(why);
    const tuttiUniqueId id = newId();
    answerAll(store, kGood, toBytes(id));
    return id;
  } catch (...) {
    const auto why = std::current_exception();
    try {
      tellAll(store, size, textOf(why), stopped);
    } catch (const std::exception&) {  // the Store is gone: nobody can be told
    }
    std::rethrow_exception(why);
  }
}

tuttiUniqueId awaitId(c10d::Store& store, int rank, milliseconds timeout, const Stopped& stopped) {
  store.set(presence(rank), std::vector<uint8_t>{1});
  constexpr milliseconds kGrace(2'000);  // rank 0 gives up first, and says who is missing
  const std::string missing = "rank 0 did not come to make the group within " + std::to_string(timeout.count()) + " ms";
  bool came = false;
  try {
    came = awaitKeys(store, {"id"}, timeout + kGrace, stopped);
  } catch (...) {
    if (const auto why = stopped ? stopped() : nullptr) std::rethrow_exception(why);
    fail(missing + ": " + textOf(std::current_exception()));
  }
  if (!came) fail(missing);
  std::vector<uint8_t> answer = store.get("id");
  const uint8_t kind = answer.empty() ? kBad : answer.front();
  if (!answer.empty()) answer.erase(answer.begin());
  if (kind == kGood) return fromBytes(answer);
  store.set(hearing(rank), std::vector<uint8_t>{1});
  fail(std::string(answer.begin(), answer.end()));
}

}  // namespace

int toMs(milliseconds time) {
  return static_cast<int>(std::clamp<int64_t>(time.count(), 1, std::numeric_limits<int>::max()));
}

tuttiUniqueId newId() {
  tuttiUniqueId id;
  check(tuttiGetUniqueId(&id));
  return id;
}

std::vector<uint8_t> toBytes(const tuttiUniqueId& id) { return {std::begin(id.internal), std::end(id.internal)}; }

tuttiUniqueId fromBytes(const std::vector<uint8_t>& bytes) {
  tuttiUniqueId id;
  if (bytes.size() != sizeof id.internal) fail("what the Store has is no id: another program uses the same keys");
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

tuttiUniqueId agreeOnId(c10d::Store& store, int rank, int size, milliseconds timeout, const Stopped& stopped) {
  return rank == 0 ? offerId(store, size, timeout, stopped) : awaitId(store, rank, timeout, stopped);
}

Communicator::Communicator(const tuttiUniqueId& id, int rank, int size, milliseconds timeout, const std::string& name,
                           const std::string& device) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.joinTimeoutMs = config.operationTimeoutMs = toMs(timeout);
  config.name = name.c_str();
  config.device = device.c_str();
  config.nonBlocking = 1;  // so that it can be aborted meanwhile
  const tuttiResult_t result = tuttiCommInitRankConfig(&comm_, size, id, rank, &config);
  if (result != tuttiInProgress) check(result);
}

void Communicator::awaitAll() {
  tuttiResult_t result = tuttiInProgress;
  for (milliseconds look(1);; look = std::min(2 * look, milliseconds(20))) {
    check(tuttiCommGetAsyncError(comm_, &result));
    if (result != tuttiInProgress) break;
    std::this_thread::sleep_for(look);
  }
  if (result != tuttiSuccess) fail(tuttiGetLastError(comm_));
}

tuttiResult_t Communicator::state() const noexcept {
  tuttiResult_t result = tuttiSuccess;
  tuttiCommGetAsyncError(comm_, &result);
  return result == tuttiInProgress ? tuttiSuccess : result;
}

std::exception_ptr Communicator::error() const {
  if (gone_) return failure("the process group was aborted on this rank");
  const tuttiResult_t result = state();
  if (result == tuttiSuccess) return nullptr;
  const std::string text = tuttiGetLastError(comm_);
  return failure(text.empty() ? tuttiGetErrorString(result) : text);
}

Communicator::~Communicator() {
  if (!gone_.exchange(true)) tuttiCommDestroy(comm_);
}

void Communicator::abort() noexcept {
  if (!gone_.exchange(true)) tuttiCommAbort(comm_);
}

}  // namespace tutti_torch
