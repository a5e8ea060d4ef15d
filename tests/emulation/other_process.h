// Runs one test of this program in a process of its own.
#pragma once
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace tutti::emulation {

// The exit status of the process; -1 when it had none. `test` is one that is disabled, so that it runs nowhere else.
inline int statusOfOtherProcess(const std::string& test, std::vector<std::string> settings) {
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
  int status = -1;
  if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environment.data()) != 0) return -1;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tutti::emulation
