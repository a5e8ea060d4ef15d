#include "window/view.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <map>
#include <utility>

#include "base/error.h"
#include "process/process_object.h"
#include "window/addresses.h"

namespace tutti::window {
namespace {

// Numbers of files come again after very many, and a card is what its owner wrote: both together are told apart.
using Key = std::pair<std::pair<dev_t, ino_t>, std::pair<uint64_t, uint64_t>>;

// Before it is read: what is no file in memory might keep its reader waiting.
uint64_t bytesOf(int file) {
  const uint64_t bytes = sealedBytes(file, "the file of its memory");
  if (bytes < 2 * kPieceBytes || bytes > kMostBytes || bytes % kPieceBytes != 0)
    throw Error(ErrorCode::kRemote, fmt::format("the file of its memory has {} bytes", bytes));
  return bytes;
}

Key keyOf(int file) {
  struct stat status {};
  Card card;
  if (::fstat(file, &status) != 0 || ::pread(file, &card, sizeof card, 0) != static_cast<ssize_t>(sizeof card) ||
      card.magic != kMagic)
    throw Error(ErrorCode::kRemote, "the file of its memory is no window");
  return {{status.st_dev, status.st_ino}, {card.drawn[0], card.drawn[1]}};
}

class Views {
 public:
  static Views& ofProcess() { return ofThisProcess<Views>(); }
  template <class Make>
  std::shared_ptr<View> find(const Key& key, Make make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& entry) { return entry.second.expired(); });
    auto& known = all_[key];
    auto view = known.lock();
    if (!view) known = view = make();
    return view;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::map<Key, std::weak_ptr<View>> all_;
};

}  // namespace

View::View(UniqueFd file, uint64_t bytes)
    : file_(std::move(file)),
      mark_(file_.get()),
      bytes_(bytes),
      mapped_(std::make_unique<std::atomic<uint64_t>[]>(bytes / kPieceBytes / 64 + 1)) {}

std::shared_ptr<View> View::of(UniqueFd file, std::string& why) try {
  requireNoLimit();
  const uint64_t bytes = bytesOf(file.get());
  return Views::ofProcess().find(keyOf(file.get()),
                                 [&] { return std::shared_ptr<View>(new View(std::move(file), bytes)); });
} catch (const Error& error) {
  why = error.what();
  return nullptr;
}

// A child of fork has no use for it, and a core dump would have to fill it.
bool View::map(uint64_t piece) noexcept {
  const std::lock_guard lock(mapping_);
  // Another thread may have been first, and read there already.
  if ((mapped_[piece / 64].load(std::memory_order_relaxed) >> piece % 64 & 1) != 0) return true;
  if (!reserve()) return false;
  std::byte* const begin = addresses_.data() + piece * kPieceBytes;
  if (!mark_.isOf(file_.get()) || ::mmap(begin, kPieceBytes, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                                         file_.get(), static_cast<off_t>(piece * kPieceBytes)) == MAP_FAILED)
    return false;
  ::madvise(begin, kPieceBytes, MADV_DONTFORK);
  ::madvise(begin, kPieceBytes, MADV_DONTDUMP);
  // Release: pairs with at().
  mapped_[piece / 64].fetch_or(uint64_t{1} << piece % 64, std::memory_order_release);
  return true;
}

// With the lock.
bool View::reserve() noexcept try {
  if (addresses_.data() != nullptr) return true;
  addresses_ = reserveAddresses(bytes_);
  base_.store(addresses_.data(), std::memory_order_relaxed);
  return true;
} catch (const std::exception&) {
  return false;
}

size_t View::mappedBytes() const noexcept {
  size_t pieces = 0;
  for (size_t word = 0; word <= bytes_ / kPieceBytes / 64; ++word)
    pieces += static_cast<size_t>(std::popcount(mapped_[word].load(std::memory_order_relaxed)));
  return pieces * kPieceBytes;
}

}  // namespace tutti::window
