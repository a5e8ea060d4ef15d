// Where the ranks of a job meet apart from what is measured: a page of memory with a barrier, a value of each rank, and
// room for what a library's own set-up must exchange. The same for every system, so that none is favoured by its own.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tutti::compare {

inline constexpr int kMostRanks = 16;

class Meeting {
 public:
  // `path` is an empty file that all ranks map.
  Meeting(const std::string& path, int rank, int ranks) : rank_(rank), ranks_(ranks) {
    if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) throw std::runtime_error("no such rank");
    const int file = open(path.c_str(), O_RDWR);
    if (file < 0 || ftruncate(file, sizeof(Page)) != 0) throw std::runtime_error(path + ": " + std::strerror(errno));
    void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) throw std::runtime_error(path + ": " + std::strerror(errno));
    page_ = static_cast<Page*>(memory);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  void barrier() { barrier(sched_yield); }

  // Tells the other ranks not to wait for this one.
  void fail() { page_->failed.store(1, std::memory_order_release); }

  // Seconds that a word takes from rank 0 to rank 1 and back, to both; others get 0. These two need a processor each.
  // All come, and sleep when they have nothing to do with it, so that nothing else runs beside it. The median of a few:
  // one alone may have been interrupted.
  double thereAndBack() {
    if (ranks_ < 2) return 0;
    std::array<double, 5> all{};
    barrier();
    for (double& one : all) one = rank_ < 2 ? exchangeWords() : 0;
    barrier(rest);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

  double largest(double value) {
    page_->values[rank_] = value;
    barrier();
    const double result = *std::max_element(page_->values, page_->values + ranks_);
    barrier();
    return result;
  }

  // `from` of each rank, one after the other.
  void exchange(const void* from, void* to, size_t bytes) {
    if (bytes > kBlob) throw std::runtime_error("too much to exchange");
    std::memcpy(page_->blobs[rank_], from, bytes);
    barrier();
    for (int rank = 0; rank < ranks_; ++rank) {
      std::memcpy(static_cast<std::byte*>(to) + static_cast<size_t>(rank) * bytes, page_->blobs[rank], bytes);
    }
    barrier();
  }

 private:
  static constexpr int kSpins = 1000;
  static constexpr size_t kBlob = 256 << 10;
  struct alignas(128) Word {  // processors fetch two lines at a time
    std::atomic<uint32_t> value;
  };
  struct Page {
    alignas(64) std::atomic<uint32_t> arrived;
    alignas(64) std::atomic<uint32_t> generation;
    alignas(64) std::atomic<uint32_t> failed;
    Word words[2];
    alignas(64) double values[kMostRanks];
    std::byte blobs[kMostRanks][kBlob];
  };

  // `wait`: between two looks at whether all have come, after the first ones.
  template <class Wait>
  void barrier(Wait wait) {
    const uint32_t before = page_->generation.load(std::memory_order_relaxed);
    // acq_rel: what each rank wrote before it came is seen by the last one, and through `generation` by all.
    if (page_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(ranks_)) {
      page_->arrived.store(0, std::memory_order_relaxed);
      page_->generation.store(before + 1, std::memory_order_release);  // acquired below
      return;
    }
    for (int turn = 0; page_->generation.load(std::memory_order_acquire) == before; ++turn) {
      if (turn > kSpins) wait();
      leaveIfOneFailed();
    }
  }

  static void rest() {
    constexpr timespec kMoment{0, 100'000};
    nanosleep(&kMoment, nullptr);
  }

  double exchangeWords() {
    constexpr uint32_t kTurns = 100;
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      ++words_;
      if (rank_ == 0)
        page_->words[0].value.store(words_, std::memory_order_release);  // acquired below, and the reverse
      while (page_->words[1 - rank_].value.load(std::memory_order_acquire) != words_) leaveIfOneFailed();
      if (rank_ == 1) page_->words[1].value.store(words_, std::memory_order_release);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kTurns;
  }

  void leaveIfOneFailed() const {
    if (page_->failed.load(std::memory_order_acquire) != 0) _exit(3);  // that one has said why
  }

  Page* page_;
  int rank_, ranks_;
  uint32_t words_ = 0;  // that have come and gone
};

}  // namespace tutti::compare
