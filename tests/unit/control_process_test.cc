// The program that control_processes.h starts.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "control_processes.h"
#include "join/open_root.h"
#include "join/root.h"
#include "support/join_plane.h"

extern char** environ;

namespace tutti::control::test {
namespace {

constexpr const char* kVariable = "TUTTI_TEST_PROCESS";

// Shrinks, and shrinks again what fails, until it is killed.
[[noreturn]] void shrinkForEver(Plane& first, std::chrono::milliseconds heartbeat) {
  const Bytes info = toBytes(fmt::format("was {}", first.rank()));
  std::shared_ptr<Plane> last;
  for (Plane* plane = &first;;) {
    awaitFrom([&] { return plane->failure(); });
    JoinRequest like;
    like.info = info;
    like.deadline = soon();
    like.heartbeat = heartbeat;
    auto next = plane->shrink(like);
    last = std::move(next);
    plane = last.get();
  }
}

void runAs(Plane& plane, const std::string& mode, const std::string& expect, std::chrono::milliseconds heartbeat) {
  if (mode == "leave") return;
  if (mode == "vanish") {
    plane.leave();
    ::_exit(0);
  }
  for (int r = 0; r < plane.size(); ++r) plane.post(r, kReadyKey, {});
  if (mode == "wait")
    for (;;) ::pause();
  if (mode == "shrink") shrinkForEver(plane, heartbeat);
  if (mode == "claims") {
    plane.allGather({}, soon());
    EXPECT_TRUE(awaitFrom([&] { return plane.failure(); }).has_value());
    return;
  }
  const auto failure = awaitFrom([&] { return plane.failure(); });
  ASSERT_TRUE(failure.has_value());
  EXPECT_NE(failure->text.find(expect), std::string::npos) << failure->text;
  std::printf("rank %d: %s\n", plane.rank(), failure->text.c_str());
  if (mode != "outcast") return;
  const Thrown thrown = thrownBy([&] { plane.shrink(requestFor({}, 0, 1)); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
  EXPECT_NE(thrown.text.find("the others go on without this rank"), std::string::npos) << thrown.text;
}

void openRootFor(const UniqueId& id) {
  RootPlace place;
  place.id = id;
  place.tcp = !id.addresses.empty();
  place.port = place.tcp ? id.addresses.front().port : uint16_t{0};
  startRoot(place, {}, soon());
}

// All the descriptors that there are, but for so many.
[[noreturn]] void hoard(size_t butFor) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, 128);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<UniqueFd> all;
  for (int fd = 0; (fd = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0;) all.emplace_back(fd);
  all.resize(all.size() - butFor);
  ::raise(SIGSTOP);
  for (;;) ::pause();
}

TEST(OtherProcess, DISABLED_Rank) {
  const char* hex = std::getenv(kVariable);
  if (hex == nullptr) GTEST_SKIP() << "runs only as a process of another test";
  const std::string said(hex);
  Bytes bytes;
  for (size_t i = 0; i + 1 < said.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(said.substr(i, 2), nullptr, 16)));
  Reader in(bytes);
  const UniqueId id = decode(fromHex(in.text()));
  const auto rank = in.value<int>(), size = in.value<int>();
  JoinRequest request = requestFor(id, rank, size);
  request.heartbeat = std::chrono::milliseconds(in.value<int>());
  const std::string mode = in.text(), expect = in.text();
  if (mode == "dooms" || mode == "hoards" || mode == "crowded") openRootFor(id);
  if (mode == "dooms") {
    tellRootHere(id.job, rank, 0, [&] { return std::string(expect); });
    std::atexit([] { ::raise(SIGSTOP); });  // before what the library does at the end
    return;
  }
  if (mode == "hoards" || mode == "crowded") hoard(mode == "crowded" ? 1 : 0);
  if (mode == "fails") {
    request.network.interfaces = "=no-such";
    EXPECT_EQ(thrownBy([&] { joinPlane(request); }).code, codeOf(ErrorCode::kInvalidUsage));
    return;
  }
  if (mode == "claims") request.info = toBytes(expect);
  const auto plane = joinPlane(request);
  runAs(*plane, mode, expect, request.heartbeat);
}

}  // namespace

pid_t startRank(const Process& process) {
  const Bytes bytes = Writer()
                          .text(toHex(encode(process.id)))
                          .value(process.rank)
                          .value(process.size)
                          .value(process.heartbeatMs)
                          .text(process.mode)
                          .text(process.expect)
                          .take();
  std::string hex;
  for (const std::byte b : bytes) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  ::setenv(kVariable, hex.c_str(), 1);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=OtherProcess.DISABLED_Rank",
              also = "--gtest_also_run_disabled_tests", quiet = "--gtest_brief=1";
  char* arguments[] = {program.data(), filter.data(), also.data(), quiet.data(), nullptr};
  pid_t pid = -1;
  EXPECT_EQ(::posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  ::unsetenv(kVariable);
  return pid;
}

}  // namespace tutti::control::test
