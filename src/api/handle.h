// What a tuttiComm_t points to: a small shell around a communicator. Shells are never freed, so that using a
// communicator after its end is an error with a text and not a crash.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/types.h"
#include "comm/communicator.h"
#include "tutti/tutti.h"

namespace tutti::api {

// Operators made by tuttiRedOpCreatePreMulSum: one communicator's table, numbered from tuttiNumOps on.
struct Operator {
  DataType type;
  uint64_t factor;
  bool alive;
};

struct Registration {
  void* buffer;
  size_t bytes;
};

}  // namespace tutti::api

struct tuttiComm {
  static constexpr uint64_t kMagic = 0x7475747469636f6d;  // "tutticom"
  uint64_t magic = kMagic;
  std::atomic<uint32_t> state{0};  // of the bits below
  int rank = 0, size = 0;
  std::shared_ptr<tutti::comm::Communicator> communicator;  // touched by whoever holds kInside, or ends it
  std::weak_ptr<tutti::comm::Communicator> stopper;         // for tuttiCommAbort; never changed after creation
  std::vector<tutti::api::Operator> operators;
  std::vector<std::unique_ptr<tutti::api::Registration>> registrations;

  std::mutex errorMutex;  // guards the two below, which any thread may ask for
  tuttiResult_t asyncError = tuttiSuccess;
  std::string lastError;
};

namespace tutti::api {

inline constexpr uint32_t kInside = 1;   // a thread is in a call
inline constexpr uint32_t kAborted = 2;  // tuttiCommAbort was called: whoever leaves last frees
inline constexpr uint32_t kGone = 4;     // destroyed

// A new shell, kept for the life of the process.
tuttiComm_t makeHandle(std::shared_ptr<comm::Communicator> communicator);

// A thread's stay inside a communicator for one call. Throws Error: kInvalidArgument for NULL, a foreign pointer or a
// destroyed communicator, kInvalidUsage when another thread is inside.
class Visit {
 public:
  Visit(tuttiComm_t comm, const char* call);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  comm::Communicator& operator*() const noexcept { return *comm_->communicator; }
  comm::Communicator* operator->() const noexcept { return comm_->communicator.get(); }

 private:
  tuttiComm_t comm_;
};

void checkHandle(tuttiComm_t comm, const char* call);  // NULL or no communicator: throws
void abortHandle(tuttiComm_t comm);                    // any thread
void destroyHandle(tuttiComm_t comm);                  // by a thread that is inside (holds a Visit)

}  // namespace tutti::api
