#include "emulation/device/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <thread>
#include <utility>

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace tutti::emulation {
namespace {

thread_local Block* runningBlock = nullptr;

uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

std::string text(const uint3& at) { return fmt::format("({},{},{})", at.x, at.y, at.z); }

}  // namespace

Block* currentBlock() noexcept { return runningBlock; }

struct Block::Runner {
  static void enter(void* argument) {
    auto* block = static_cast<Block*>(argument);
    std::string thrown;
    try {
      block->grid_.launch.body();
    } catch (const std::exception& error) {
      thrown = fmt::format("threw \"{}\"", error.what());
    } catch (...) {
      thrown = "threw something that is no std::exception";
    }
    if (!thrown.empty()) block->fail(std::move(thrown));
    block->leave();
  }
};

Block::Block(const Grid& grid, uint3 index)
    : grid_(grid),
      index_(index),
      random_(mixed(grid.seed + mixed(index.x + (uint64_t{index.y} << 20) + (uint64_t{index.z} << 40) + 1))),
      count_(grid.launch.block.x * grid.launch.block.y * grid.launch.block.z),
      live_(count_),
      shared_(grid.launch.sharedBytes) {
  fibers_ = takeFibers(count_);
  threads_ = std::make_unique<Thread[]>(count_);
  ready_.reserve(count_);
  turn_.reserve(count_);
}

Block::~Block() { giveFibers(std::move(fibers_)); }

void Block::prepare() {
  const dim3 size = grid_.launch.block;
  for (unsigned i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    thread.number = i;
    thread.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    thread.fiber = fibers_[i].get();
    thread.fiber->start(Runner::enter, this);
    ready_.push_back(&thread);
  }
  runningBlock = this;
  blockIdx = index_;
  blockDim = size;
  gridDim = grid_.launch.grid;
}

void Block::run() {
  prepare();
  while (live_ > 0 && !grid_.failure.happened()) round();
  for (unsigned i = 0; i < count_; ++i) {
    if (!threads_[i].ended) threads_[i].fiber->abandon();
    threads_[i].fiber->join();
  }
  runningBlock = nullptr;
}

void Block::round() {
  std::swap(ready_, turn_);
  ready_.clear();
  shuffle();
  moved_ = false;
  for (Thread* thread : turn_) {
    step(*thread);
    if (grid_.failure.happened()) return;
  }
  if (live_ > 0 && ready_.empty()) reportStuck();
  if (moved_)
    idleRounds_ = 0;
  else
    rest();
}

void Block::shuffle() {
  for (size_t i = turn_.size(); i > 1; --i) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    std::swap(turn_[i - 1], turn_[(random_ >> 16) % i]);
  }
}

void Block::step(Thread& thread) {
  if (grid_.meanwhile) grid_.meanwhile();
  current_ = &thread;
  threadIdx = thread.index;
  thread.fiber->resume();
  if (thread.ended || thread.wait != Wait::kNone)
    moved_ = true;
  else
    ready_.push_back(&thread);
}

// Everybody polls: the block waits for another one, or for the host. They may need this processor for it.
void Block::rest() {
  constexpr unsigned kPatience = 64;
  if (grid_.meanwhile) return;
  if (++idleRounds_ < kPatience)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Block::suspend() noexcept { current_->fiber->suspend(); }

void Block::yield() noexcept {
  current_->converged = false;
  suspend();
}

void Block::wake(Thread& thread) noexcept {
  thread.wait = Wait::kNone;
  if (&thread != current_) ready_.push_back(&thread);  // the running one goes on by itself
}

// A thread that returns while others wait for it would, on a GPU, let some of them go and hang others.
void Block::leave() noexcept {
  Thread& self = *current_;
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& other = threads_[i];
    if (other.wait == Wait::kBarrier)
      fail(fmt::format("returned while {} threads wait at {} ({}:{}), which every thread of the block has to reach",
                       atBarrier_, other.operation, other.place.file_name(), other.place.line()));
    if (other.wait == Wait::kWarp && other.number / kLanes == self.number / kLanes &&
        other.exchange->mask >> self.number % kLanes & 1)
      fail(fmt::format("returned while lane {} waits for it in {} with mask {:#010x} ({}:{})", other.number % kLanes,
                       other.operation, other.exchange->mask, other.place.file_name(), other.place.line()));
  }
  self.ended = true;
  --live_;
}

// Nobody can run and nobody can be woken: say who waits where.
void Block::reportStuck() {
  std::map<std::string, std::string> waiting;
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    if (thread.ended) continue;
    auto where = fmt::format("{} ({}:{})", thread.operation, thread.place.file_name(), thread.place.line());
    if (thread.wait == Wait::kWarp) where += fmt::format(" with mask {:#010x}", thread.exchange->mask);
    auto& names = waiting[where];
    names += (names.empty() ? "" : ", ") + text(thread.index);
  }
  std::string all;
  for (const auto& [where, names] : waiting) all += fmt::format("; at {}: {}", where, names);
  grid_.failure.report(describe(nullptr, "deadlock, every thread waits for others that never come" + all));
}

std::string Block::describe(const Thread* thread, const std::string& what) const {
  const std::string who = thread ? fmt::format(", thread {} (warp {}, lane {})", text(thread->index),
                                               thread->number / kLanes, thread->number % kLanes)
                                 : "";
  return fmt::format("kernel {}, block {}{}, seed {}: {}", kernelName(grid_.launch.kernel), text(index_), who, seed(),
                     what);
}

void Block::fail(std::string what) noexcept {
  grid_.failure.report(describe(current_, what));
  std::string().swap(what);  // nobody comes back to free it
  for (;;) suspend();        // never resumed; the stack is given up
}

}  // namespace tutti::emulation
