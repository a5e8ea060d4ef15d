// Runs one test of this program in a process of its own.
#pragma once
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace tutti::emulation {

// -1 when it could not be started. `test` is one that is disabled, so that it runs nowhere else. No other thread may
// change the environment meanwhile.
inline pid_t startOtherProcess(const std::string& test, std::vector<std::string> settings) {
  std::vector<char*> environment;
  for (auto& setting : settings) environment.push_back(setting.data());
  for (char** entry = environ; *entry; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  std::vector<std::string> words{"other", "--gtest_also_run_disabled_tests", "--gtest_filter=" + test,
                                 "--gtest_output="};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  return posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environment.data()) == 0 ? pid : -1;
}

// Waits for it. Its exit status; -1 when it had none.
inline int statusOf(pid_t pid) {
  int status = -1;
  if (pid < 0) return -1;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline int statusOfOtherProcess(const std::string& test, std::vector<std::string> settings) {
  return statusOf(startOtherProcess(test, std::move(settings)));
}

}  // namespace tutti::emulation
