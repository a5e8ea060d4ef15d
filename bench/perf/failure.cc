#include "perf/failure.h"

#include <fmt/format.h>

#include <string_view>

namespace tutti::perf {

namespace {

struct Option {
  std::string_view field, name;
};
constexpr Option kOptions[] = {
    {"config.transports", "--transport"}, {"config.algorithm", "--algo"}, {"config.operationTimeoutMs", "-T"}};

std::string inOptions(std::string words) {
  for (const Option& option : kOptions)
    for (size_t at = 0; (at = words.find(option.field, at)) != std::string::npos;)
      words.replace(at, option.field.size(), option.name);
  return words;
}

// In general words. Before there is a communicator nothing was called that a call could fail to fit: what was used
// wrongly is the environment, and the library's words name it.
std::string resultText(const std::string& call, tuttiResult_t result) {
  const bool begins = call.starts_with("tuttiCommInit") || call == "tuttiGetUniqueId";
  return begins && result == tuttiInvalidUsage ? "" : tuttiGetErrorString(result);
}

}  // namespace

std::string failureText(const std::string& who, const std::string& call, tuttiResult_t result,
                        const std::string& words) {
  const std::string prefix = call + ": ";
  const std::string rest = inOptions(words.starts_with(prefix) ? words.substr(prefix.size()) : words);
  const std::string general = resultText(call, result);
  return fmt::format("{}: {}{}{}{}", who, prefix, general, general.empty() || rest.empty() ? "" : ": ", rest);
}

void require(tuttiResult_t result, const char* call, int rank, tuttiComm_t comm) {
  if (result == tuttiSuccess) return;
  std::string words = tuttiGetLastError(comm);
  if (words.empty() && comm != nullptr) words = tuttiGetLastError(nullptr);
  const std::string who = rank < 0 ? std::string("this process") : fmt::format("rank {}", rank);
  Failure failure(failureText(who, call, result, words));
  failure.isEcho = result == tuttiRemoteError && words.find(" called tuttiCommAbort") != std::string::npos;
  throw failure;
}

}  // namespace tutti::perf
