// The ranks' side of PMI-1 against a process manager that is a thread here.
#include "launch/pmi.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "control_ranks.h"
#include "launch/rendezvous.h"
#include "net/handshake.h"
#include "process/fd.h"

namespace tutti::control::test {
namespace {

// Answers each rank on a socket of its own, as Hydra does; the barrier lets go when all have come.
class Manager {
 public:
  explicit Manager(int ranks) : ranks_(ranks) {
    for (int r = 0; r < ranks; ++r) {
      int pair[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
      ours_.emplace_back(pair[0]);
      theirs_.emplace_back(pair[1]);
    }
    for (int r = 0; r < ranks; ++r) threads_.emplace_back([this, r] { serve(ours_[size_t(r)].get()); });
  }
  ~Manager() {
    for (UniqueFd& fd : ours_) ::shutdown(fd.get(), SHUT_RDWR);
    for (auto& thread : threads_) thread.join();
  }
  int fd(int rank) const { return theirs_[size_t(rank)].get(); }

 private:
  void serve(int fd) {
    std::string text;
    char byte = 0;
    while (::read(fd, &byte, 1) == 1) {
      if (byte != '\n') {
        text += byte;
        continue;
      }
      answer(fd, text);
      text.clear();
    }
  }

  void answer(int fd, const std::string& line) {
    std::map<std::string, std::string> fields;
    std::istringstream words(line);
    for (std::string word; words >> word;) fields[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    const std::lock_guard lock(mutex_);
    if (fields["cmd"] == "init") say(fd, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    if (fields["cmd"] == "get_my_kvsname") say(fd, "cmd=my_kvsname kvsname=kvs_1_0");
    if (fields["cmd"] == "put") {
      const bool fresh = values_.emplace(fields["key"], fields["value"]).second;
      say(fd, fresh ? "cmd=put_result rc=0 msg=success" : "cmd=put_result rc=-1 msg=duplicate_key");
    }
    if (fields["cmd"] == "get") {
      const auto at = values_.find(fields["key"]);
      say(fd, at == values_.end() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown"
                                  : "cmd=get_result rc=0 msg=success value=" + at->second);
    }
    if (fields["cmd"] == "barrier_in") {
      if (++waiting_ < ranks_) return;
      waiting_ = 0;
      for (const UniqueFd& each : ours_) say(each.get(), "cmd=barrier_out");
    }
  }

  // In two parts: a line need not come whole.
  static void say(int fd, const std::string& line) {
    EXPECT_EQ(::write(fd, line.data(), 5), 5);
    const std::string rest = line.substr(5) + "\n";
    EXPECT_EQ(::write(fd, rest.data(), rest.size()), ssize_t(rest.size()));
  }

  int ranks_, waiting_ = 0;
  std::vector<UniqueFd> ours_, theirs_;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::vector<std::thread> threads_;
};

TEST(Pmi, WhatOneRankPutsAllCanGet) {
  const Manager manager(3);
  inThreads(3, [&](int r) {
    pmi::Client client(manager.fd(r), soon());
    if (r == 0) client.put("key", "a-value");
    client.barrier();
    EXPECT_EQ(client.get("key"), "a-value");
  });
}

TEST(Pmi, RefusalsAreErrorsThatShowNoValue) {
  const Manager manager(1);
  pmi::Client client(manager.fd(0), soon());
  client.put("key", "hidden");
  const Thrown again = thrownBy([&] { client.put("key", "hidden"); });
  EXPECT_EQ(again.code, int(ErrorCode::kRemote));
  EXPECT_NE(again.text.find("put_result with rc=-1"), std::string::npos) << again.text;
  EXPECT_EQ(again.text.find("hidden"), std::string::npos) << again.text;
  EXPECT_EQ(thrownBy([&] { client.get("other"); }).code, int(ErrorCode::kRemote));
}

TEST(Pmi, ABarrierThatNotAllReachEndsAtTheDeadline) {
  const Manager manager(2);
  pmi::Client client(manager.fd(0), Deadline::in(std::chrono::milliseconds(200)));
  EXPECT_EQ(thrownBy([&] { client.barrier(); }).code, int(ErrorCode::kTimeout));
}

TEST(Pmi, GarbageAndSilenceAreErrors) {
  const auto told = [](const std::string& bytes, bool closes) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const UniqueFd mine(pair[1]);
    UniqueFd manager(pair[0]);
    EXPECT_EQ(::write(manager.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
    if (closes) ::shutdown(manager.get(), SHUT_WR);
    return thrownBy([&] { pmi::Client(mine.get(), Deadline::in(std::chrono::milliseconds(100))); });
  };
  EXPECT_EQ(told("", false).code, int(ErrorCode::kTimeout));
  EXPECT_NE(told("", true).text.find("has closed it"), std::string::npos);
  EXPECT_NE(told("hello\n", false).text.find("something else than response_to_init"), std::string::npos);
  EXPECT_NE(told("cmd=response_to_init rc=-1\n", false).text.find("rc=-1"), std::string::npos);
  EXPECT_NE(told(std::string(5000, 'x'), false).text.find("without end"), std::string::npos);
  EXPECT_EQ(thrownBy([] { pmi::Client(1 << 19, soon()); }).code, int(ErrorCode::kRemote)) << "no such descriptor";
}

TEST(Pmi, RanksOfSeveralHostsMeetThroughIt) {
  const Manager manager(4);
  for (int round = 0; round < 2; ++round)
    inThreads(4, [&](int r) {
      LaunchInfo launch;
      launch.rank = r;
      launch.size = 4;
      launch.pmi = manager.fd(r);
      launch.pmiKey = round;
      const UniqueId id = meetingPlace(launch, {}, soon());
      EXPECT_NE(id.secret, Secret{}) << "it is not to be guessed";
      const auto plane = joinPlane(requestFor(id, r, 4));
      EXPECT_EQ(toText(plane->info(3)), "card of 3");
    });
}

TEST(Pmi, ASecretBesideItCounts) {
  for (const bool alike : {true, false}) {
    const Manager manager(2);
    inThreads(2, [&](int r) {
      LaunchInfo launch;
      launch.rank = r;
      launch.size = 2;
      launch.pmi = manager.fd(r);
      if (alike || r == 0) launch.secret = "hidden";
      const UniqueId id = meetingPlace(launch, {}, soon());
      EXPECT_EQ(id.beside != Secret{}, launch.secret.has_value());
      const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, r, 2)); });
      EXPECT_EQ(thrown.code, alike ? 0 : codeOf(ErrorCode::kInvalidUsage));
      EXPECT_EQ(thrown.text.find("disagree on TUTTI_SECRET") == std::string::npos, alike) << thrown.text;
    });
  }
}

}  // namespace
}  // namespace tutti::control::test
