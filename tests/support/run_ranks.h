// Ranks are threads: runs `body(rank)` on n threads, joins them all and rethrows the first failure.
#pragma once
#include <exception>
#include <thread>
#include <vector>

namespace tutti::test {

template <class Body>
void runRanks(int n, Body body) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        failures[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tutti::test
