// Memory of the program that stays where it is until the program says otherwise: what it has registered with a
// communicator, and what it has allocated here. Whoever keeps something of a piece of it beyond a call, such as a
// device's registration, asks for it here, and is told when it ends; of any other memory nobody would hear that it is
// somewhere else by now.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace tutti::window {

struct Lasting {
  const std::byte* begin = nullptr;
  size_t bytes = 0;
  uint64_t number = 0;  // no two in a process ever have the same
};

class LastingMemory {
 public:
  // A child made by fork has another, in which nothing is: what it has inherited it may give up without a word.
  static LastingMemory& ofProcess();

  // Returns its number. Pieces may overlap, and be there several times. Any thread, as all of these.
  uint64_t add(const void* begin, size_t bytes);
  // Once it returns, all who wish to be told have been.
  void remove(uint64_t number) noexcept;
  // Tells of one that is not there any more once again: whoever has found it before, and kept something of it since,
  // gives that up. False: it is there.
  bool tellAgain(const Lasting& memory) const noexcept;
  // The oldest piece in which all of this is.
  std::optional<Lasting> find(const std::byte* begin, size_t bytes) const noexcept;

  // From now on it is called with every piece that ends, on the thread that ends it. One for each `who`.
  using Forget = void (*)(const void* who, const Lasting& memory) noexcept;
  void tell(const void* who, Forget forget);

 private:
  void tellAll(const Lasting& ended) const noexcept;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Lasting> all_;  // in the order of their numbers
  std::vector<std::pair<const void*, Forget>> told_;
  uint64_t last_ = 0;
};

// Of one piece, as long as this is there. In a child made by fork it does nothing.
class Lasts {
 public:
  Lasts(const void* begin, size_t bytes);
  ~Lasts();
  Lasts(Lasts&& other) noexcept : generation_(other.generation_), number_(std::exchange(other.number_, 0)) {}
  Lasts& operator=(Lasts&&) = delete;

 private:
  const uint32_t generation_;
  uint64_t number_;  // 0: moved from
};

}  // namespace tutti::window
