// One communicator of tutti: made over a Store, left in good order or stopped.
#pragma once
#include <tutti/tutti.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "store_wait.h"

namespace tutti_torch {

// As tutti counts them: an int, at least 1.
int toMs(milliseconds time);

class Communicator {
 public:
  // Begins to join. `name` is for error texts, `device` where all buffers are: "cpu", "cuda:0".
  Communicator(const tuttiUniqueId& id, int rank, int size, milliseconds timeout, const std::string& name,
               const std::string& device = "cpu");
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Blocks until all have come, or throws DistBackendError naming those who have not. Before any call.
  void awaitAll();
  tuttiComm_t get() const { return comm_; }
  // Whether it has been aborted: then there is nothing left to ask.
  bool isGone() const { return gone_; }
  // tuttiSuccess, or what stopped it. Any thread.
  tuttiResult_t state() const noexcept;
  // The same as an exception; null while all is well. Any thread.
  std::exception_ptr error() const;
  // Ends what runs on it, here and on the other ranks, and joining. Any thread.
  void abort() noexcept;

 private:
  tuttiComm_t comm_ = nullptr;
  std::atomic<bool> gone_{false};
};

tuttiUniqueId newId();
std::vector<uint8_t> toBytes(const tuttiUniqueId& id);
tuttiUniqueId fromBytes(const std::vector<uint8_t>& bytes);

// The id for all ranks of a group: rank 0 makes it once all are there, so that it cannot expire before the last has
// come. Throws DistBackendError naming those who are missing after `timeout`, and what `stopped` tells; where that is
// rank 0's, the others hear of it.
tuttiUniqueId agreeOnId(c10d::Store& store, int rank, int size, milliseconds timeout, const Stopped& stopped = {});

}  // namespace tutti_torch
