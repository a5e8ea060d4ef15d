// Threads of a program, each of which is a rank or several.
#pragma once
#include <system_error>
#include <thread>
#include <utility>

namespace tutti::perf {

// Says why there is no further thread, and ends the process: the threads that there are wait for the ranks of those
// that are not.
[[noreturn]] void endWithoutThread(const std::system_error& error) noexcept;

template <class Body>
std::thread startThread(Body&& body) try {
  return std::thread(std::forward<Body>(body));
} catch (const std::system_error& error) {
  endWithoutThread(error);
}

}  // namespace tutti::perf
