// The names of a root's Unix sockets. One follows from the job, and every user of the host can work it out. Another is
// drawn for each run, and left in a file of the user's folder: nobody else knows it before it is listened at, and who
// has seen it then can do nothing with it later.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tutti::control {

// The one that follows from the job, and what the file with the other is called.
std::string rootUnixName(uint64_t job);

// What the root of that job has left in the folder. Nullopt: nothing, or what no root of this user's can have left; or
// the folder is not this user's alone. Any thread.
std::optional<std::string> rootNameIn(const std::string& folder, uint64_t job);

// A drawn name, which lies in the folder from here on until it is withdrawn.
class RootName {
 public:
  // Replaces whatever lies there. Throws Error(kSystem) when a process of this user's listens at the name that does.
  // Where nothing can be left, and where `folder` is empty, there is no name.
  RootName(std::string folder, uint64_t job);
  ~RootName() { withdraw(); }
  RootName(const RootName&) = delete;
  RootName& operator=(const RootName&) = delete;

  const std::string& text() const noexcept { return text_; }  // empty: there is none, or no more
  // Removes the file, unless another root has put its own in the place. Called before the root ceases to listen at the
  // name that follows from the job: as long as it does, no other begins.
  void withdraw() noexcept;

 private:
  const std::string folder_, file_;
  std::string text_;
};

}  // namespace tutti::control
