#include "window/own_window.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>

#include "base/error.h"
#include "base/random.h"
#include "process/fork.h"
#include "process/process_object.h"
#include "window/addresses.h"

namespace tutti::window {
namespace {

constexpr size_t kLeastWindow = size_t{64} << 20;

size_t pageBytes() noexcept { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

size_t upTo(size_t bytes, size_t whole) noexcept { return (bytes + whole - 1) / whole * whole; }

// Twice the host's memory: holes between buffers must not keep one from its place. But no more than the many ranks of a
// host have addresses for, each of which reserves the windows of all.
size_t wishedBytes() noexcept {
#if defined(__SANITIZE_THREAD__)
  return size_t{16} << 30;  // its shadow leaves a program few addresses
#else
  const auto pages = static_cast<size_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L));
  return std::clamp<size_t>(2 * std::bit_ceil(pages * pageBytes()), size_t{1} << 30, kMostBytes);
#endif
}

// Who re-opens it needs the file's rights as well: nobody else's but this user's.
UniqueFd readableOf(int file) {
  if (::fchmod(file, S_IRUSR | S_IWUSR) != 0) throw systemError("cannot keep a memory file to this user", errno);
  UniqueFd readable(::open(fmt::format("/proc/self/fd/{}", file).c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable) throw systemError("cannot open a memory file to be read only (/proc/self/fd)", errno);
  return readable;
}

void writeCard(int file) {
  const Card card{kMagic, {randomNumber(), randomNumber()}};
  if (::pwrite(file, &card, sizeof card, 0) != static_cast<ssize_t>(sizeof card))
    throw systemError("cannot write to a memory file", errno);
}

bool punch(int file, size_t at, size_t bytes) noexcept {
  return ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                     static_cast<off_t>(bytes)) == 0;
}

// Of a system that has no holes nothing would ever be given back.
void requireHoles(int file) {
  if (!punch(file, pageBytes(), pageBytes())) throw systemError("cannot empty a part of a memory file", errno);
}

}  // namespace

// One that was given out. In a child of fork it is its parent's: the child gives up what it has mapped of it, and no
// byte of it. What a child may have mapped is not given out again by its parent: the child would read and write
// another's buffer.
class OwnWindow::Buffer {
 public:
  Buffer(OwnWindow& window, size_t at, size_t bytes) : window_(window), at_(at), bytes_(bytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (fork::generation() != generation_)
      ::munmap(data(), bytes_);
    else if (!isMapped_ || (window_.empty(at_, bytes_) && fork::children() == children_))
      window_.giveBack(at_, bytes_);
  }
  std::byte* data() const noexcept { return window_.addresses_.data() + at_; }
  bool map() noexcept {
    return isMapped_ = ::mmap(data(), bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, window_.file_.get(),
                              static_cast<off_t>(at_)) != MAP_FAILED;
  }

 private:
  OwnWindow& window_;
  const uint32_t generation_ = fork::generation(), children_ = fork::children();
  const size_t at_, bytes_;
  bool isMapped_ = false;
};

OwnWindow& OwnWindow::ofProcess() { return ofThisProcess<OwnWindow>(); }

void OwnWindow::make() {
  requireNoLimit();
  const size_t bytes = wishedBytes();
  UniqueFd file = createMemoryFile("tutti-memory", bytes);
  writeCard(file.get());
  requireHoles(file.get());
  readable_ = readableOf(file.get());
  mark_.emplace(file.get());
  file_ = std::move(file);
  fileBytes_ = bytes;
}

// With the lock. What the system lacks now it may have later.
bool OwnWindow::begin() {
  if (!file_) try {
      make();
    } catch (const Error& error) {
      why_ = error.what();
    }
  return static_cast<bool>(file_);
}

// Only who has buffers pays with addresses. With the lock.
bool OwnWindow::reserve() {
  if (!begin() || !mark_->isOf(file_.get())) return false;
  if (addresses_.data() != nullptr) return true;
  for (bytes_ = fileBytes_; addresses_.data() == nullptr; bytes_ /= 2) try {
      addresses_ = reserveAddresses(bytes_);
    } catch (const Error&) {
      if (bytes_ / 2 < kLeastWindow) return false;
    }
  bytes_ = addresses_.bytes();
  free_.emplace(kPieceBytes, bytes_ - kPieceBytes);
  // Release: pairs with placeOf().
  base_.store(addresses_.data(), std::memory_order_release);
  return true;
}

int OwnWindow::fileForPeers(std::string& why) {
  const std::lock_guard lock(mutex_);
  if (begin() && mark_->isOf(readable_.get())) return readable_.get();
  why = file_ ? "the program has closed its descriptor" : why_;
  return -1;
}

// The first place that is large enough; 0: there is none. Long buffers begin where large pages may. With the lock.
size_t OwnWindow::take(size_t bytes) {
  const size_t alignment = bytes >= kPieceBytes ? kPieceBytes : pageBytes();
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    const auto [begin, room] = *hole;
    const size_t at = upTo(begin, alignment), before = at - begin;
    if (room < before || room - before < bytes) continue;
    if (const size_t after = room - before - bytes; after != 0) free_.emplace(at + bytes, after);
    if (before != 0)
      hole->second = before;
    else
      free_.erase(hole);
    return at;
  }
  return 0;
}

std::shared_ptr<void> OwnWindow::allocate(size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  const size_t whole = upTo(bytes, pageBytes());
  std::unique_lock lock(mutex_);
  const size_t at = reserve() ? take(whole) : 0;
  lock.unlock();
  if (at == 0) return nullptr;
  std::shared_ptr<Buffer> buffer;
  try {
    buffer = std::make_shared<Buffer>(*this, at, whole);
  } catch (const std::bad_alloc&) {
    giveBack(at, whole);
    throw;
  }
  if (!buffer->map()) return nullptr;
  return {buffer, buffer->data()};
}

// Back to the system: peers that have it mapped read zeros there. What cannot be emptied is not given out again. Locked
// pages (mlock, mlockall) are not removed through the mapping, nor others where the program has closed the descriptor.
// Where the process has all the mappings that it may have (vm.max_map_count) this one stays until its place is used
// again: it holds nothing.
bool OwnWindow::empty(size_t at, size_t bytes) const noexcept {
  std::byte* const begin = addresses_.data() + at;
  ::munlock(begin, bytes);
  const bool isEmpty =
      ::madvise(begin, bytes, MADV_REMOVE) == 0 || (mark_->isOf(file_.get()) && punch(file_.get(), at, bytes));
  forgetPages(begin, bytes);
  return isEmpty;
}

void OwnWindow::giveBack(size_t at, size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    const auto next = free_.emplace(at, bytes).first;
    if (const auto after = std::next(next); after != free_.end() && at + bytes == after->first) {
      next->second += after->second;
      free_.erase(after);
    }
    if (next == free_.begin()) return;
    if (const auto before = std::prev(next); before->first + before->second == at) {
      before->second += next->second;
      free_.erase(next);
    }
  } catch (const std::bad_alloc&) {  // its addresses are lost, and no memory
  }
}

}  // namespace tutti::window
