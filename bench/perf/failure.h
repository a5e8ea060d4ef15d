// What stops a program: a wrong command line, or a call of the library that failed.
#pragma once
#include <stdexcept>
#include <string>

#include "tutti/tutti.h"

namespace tutti::perf {

// The command line or the environment is wrong; the text says what and what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A call failed; the text names the rank, the call, the result and the library's own words.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
  bool isEcho = false;  // another rank says why
};

// What require() throws. The library's words begin with the call where its arguments are at fault: it is said once. Of
// the configuration they name the options of the command line that it was made of.
std::string failureText(const std::string& who, const std::string& call, tuttiResult_t result,
                        const std::string& words);
// Throws Failure unless `result` is tuttiSuccess. `rank` is -1 before the rank is known; `comm` may be NULL.
void require(tuttiResult_t result, const char* call, int rank, tuttiComm_t comm);

}  // namespace tutti::perf
