// Processes that are ranks of a job, and the lines they exchange with the harness that started them. The harness itself
// never calls the library.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::faults {

// Nanoseconds of a clock that all processes of the host share.
int64_t now() noexcept;

// One end of the line between the harness and a rank: texts, each whole. Closed with the object.
class Wire {
 public:
  Wire() = default;
  explicit Wire(int fd) noexcept : fd_(fd) {}
  Wire(Wire&& other) noexcept;
  Wire& operator=(Wire&& other) noexcept;
  ~Wire();
  int fd() const noexcept { return fd_; }
  void send(const std::string& text) const;
  // Empty: the other side is gone, or nothing came within the time.
  std::string receive(std::chrono::milliseconds patience) const;

 private:
  int fd_ = -1;
};

// A started process: this program again, with other arguments. Killed and reaped with the object.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments, const std::vector<std::string>& environment = {});
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) = delete;
  ~Child();
  pid_t pid() const noexcept { return pid_; }
  const Wire& wire() const noexcept { return wire_; }
  void signal(int number) const;
  // Its exit status, or 128 + the signal that ended it; nothing while it lives.
  std::optional<int> status();
  std::optional<int> awaitEnd(std::chrono::milliseconds patience);

 private:
  pid_t pid_ = -1;
  Wire wire_;
  std::optional<int> status_;
};

// The started process' end of its line.
Wire wireToHarness();

std::string encodeId(const tuttiUniqueId& id);
tuttiUniqueId decodeId(const std::string& text);

// What a process holds: descriptors, threads, and memory: what it has of the system, and what it has allocated of that
// (0 where the allocator does not tell).
struct Holdings {
  int descriptors = 0, threads = 0;
  long residentKiB = 0, allocatedKiB = 0;
};
Holdings holdings();
// Waits until no more descriptors and threads are held than before; returns what is held then.
Holdings awaitHoldings(const Holdings& before, std::chrono::milliseconds patience);
// The names of the descriptors, for the text of a leak.
std::string descriptorNames();
// An empty directory for temporary files, removed with the object.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  const std::string& path() const noexcept { return path_; }
  // What is in it, and what of the library's is in /dev/shm.
  std::vector<std::string> left() const;

 private:
  std::string path_;
};

}  // namespace tutti::faults
