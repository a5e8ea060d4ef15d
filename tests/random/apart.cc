#include "random/apart.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "faults/support/options.h"
#include "faults/support/process.h"

namespace tutti::faults {
namespace {

std::chrono::seconds limit() { return std::chrono::seconds(120 * static_cast<int64_t>(patience())); }

// Lines of one id each.
std::string encode(const std::vector<tuttiUniqueId>& ids) {
  std::string text;
  for (const tuttiUniqueId& id : ids) text += encodeId(id) + "\n";
  return text;
}

std::vector<tuttiUniqueId> decode(const std::string& text) {
  std::vector<tuttiUniqueId> ids;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    ids.push_back(decodeId(text.substr(at, end - at)));
  return ids;
}

[[noreturn]] void giveUp(const Session& session, const std::string& why) {
  fmt::print(stderr, "FAILED: seed {}, {}: {}\n", session.seed, session.variant, why);
  std::fflush(nullptr);
  ::_exit(1);
}

}  // namespace

void runApart(const Session& session, int processes) {
  std::vector<Child> children;
  for (int process = 0; process < processes; ++process)
    children.emplace_back(std::vector{std::to_string(process), session.variant, std::to_string(session.seed),
                                      std::to_string(session.operations)});
  const std::string ids = children[0].wire().receive(limit());
  for (const Child& child : children) child.wire().send(ids);
  for (int process = 0; process < processes; ++process) {
    const auto status = children[static_cast<size_t>(process)].awaitEnd(limit() * 10);
    if (status != 0)
      giveUp(session, status ? fmt::format("process {} ended with status {}", process, *status)
                             : fmt::format("process {} HANGS", process));
  }
}

int runAsProcess(int argc, char** argv) {
  if (argc < 5) return 2;
  const int process = std::atoi(argv[1]);
  const Session session{std::strtoull(argv[3], nullptr, 10), argv[2], std::strtoull(argv[4], nullptr, 10)};
  const Wire wire = wireToHarness();
  if (process == 0) wire.send(encode(makeIds(session)));
  runProcess(session, decode(wire.receive(limit())), process);
  return 0;
}

}  // namespace tutti::faults
