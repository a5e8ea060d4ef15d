// Which memory of the program a device has registered, so that it can send from there: as much as a setting allows,
// what was used longest ago goes first, and what is in use never. Knows no verbs but what is in the port Registrar.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include <tutti/transport.h>

namespace tutti::verbs {

// A device, or one in the tests.
class Registrar {
 public:
  struct Made {
    void* handle = nullptr;  // null, with errno: refused
    uint32_t key = 0;        // by which what is sent names it
  };
  virtual ~Registrar() = default;
  virtual std::string name() const = 0;
  virtual Made add(const void* begin, size_t bytes) noexcept = 0;
  virtual void remove(void* handle) noexcept = 0;
};

// Of one device, for all links over it. Any thread.
class MemoryCache {
 public:
  explicit MemoryCache(Registrar& registrar) : registrar_(registrar) {}
  ~MemoryCache();  // nobody holds anything of it
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  struct Held {
    std::optional<uint32_t> key;  // none: it cannot be had
    std::string why;              // then, where nobody has heard it yet
  };
  // Registers it where it is not, for which others make room until there are at most `most` bytes. It stays until
  // letGo(), as often as it was held.
  Held hold(const tuttiTransportMemory& memory, size_t most);
  void letGo(uint64_t number) noexcept;
  // It is going to be no more: nobody gets it again, and it goes now, or with the last one to let it go.
  void forget(uint64_t number) noexcept;

  // The one that nobody has used for longest. False: all are in use.
  bool giveUpOne() noexcept;

  size_t bytes() const noexcept;
  size_t count() const noexcept;
  uint64_t made() const noexcept;  // ever

 private:
  struct Entry {
    uint64_t number;
    size_t bytes;
    Registrar::Made made;
    uint32_t users = 0;
    bool forgotten = false;
  };
  using Place = std::list<Entry>::iterator;
  enum class Lack : uint8_t { kTooLong, kInUse, kRefused };

  Place find(uint64_t number) noexcept;
  bool add(const tuttiTransportMemory& memory, size_t most, Lack& lack, int& error);
  size_t bytesInUse() const noexcept;
  bool makeRoom() noexcept;
  void drop(Place entry) noexcept;
  std::string tell(const tuttiTransportMemory& memory, size_t most, Lack lack, int error);

  Registrar& registrar_;
  mutable std::mutex mutex_;  // guards what follows
  std::list<Entry> entries_;  // what was used last comes last
  size_t bytes_ = 0;
  uint64_t made_ = 0;
  std::set<uint64_t> refused_;  // not asked for again until something has gone
  std::set<Lack> told_;
};

}  // namespace tutti::verbs
