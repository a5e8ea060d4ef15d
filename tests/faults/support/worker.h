// One rank of a drawn session: it makes the communicators and streams, runs steps, and compares each result.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "faults/support/draw.h"

namespace tutti::faults {

struct Trouble {
  uint64_t operation = 0;  // its number in the session
  int communicator = -1;   // -1: not known
  tuttiResult_t result = tuttiSuccess;
  std::string text;
  bool isWrong = false;  // a result differs from what it must be
};

class Worker {
 public:
  struct Member {
    tuttiComm_t comm = nullptr;
    int rank = 0, size = 0;
    uint64_t branch = 0;  // the colors on the way to it: what tells it from its siblings
  };
  // Called before each communicator is made, with what is the same for all its ranks and for no others.
  using Prepare = std::function<void(uint64_t key, uint64_t salt)>;

  Worker(const SessionSpec& session, int rank, tuttiConfig_t config, Prepare prepare = {});

  // `ids`: one for each communicator; those of splits are not used.
  std::optional<Trouble> open(const std::vector<tuttiUniqueId>& ids);
  std::optional<Trouble> runStep(const Step& step);
  // Called at the first failure of a call, before anything else is waited for.
  void onAlarm(std::function<void()> alarm) { alarm_ = std::move(alarm); }
  std::optional<Trouble> close();
  uint64_t operations() const noexcept { return operations_; }
  std::vector<Member>& members() noexcept { return members_; }
  std::vector<tuttiStream_t>& streams() noexcept { return streams_; }

 private:
  struct Running;
  std::optional<Trouble> openOne(size_t index, const tuttiUniqueId& id);
  std::vector<Running> prepare(const Step& step);
  void note(std::optional<Trouble>& trouble, tuttiResult_t result, uint64_t operation, int communicator,
            const std::string& what) const;
  std::optional<Trouble> issue(const Step& step, std::vector<Running>& running);
  std::optional<Trouble> compareWithOthers(const Running& now);

  SessionSpec session_;
  int rank_;
  tuttiConfig_t config_;
  Prepare prepare_;
  std::function<void()> alarm_;
  uint64_t operations_ = 0;
  std::vector<tuttiStream_t> streams_;
  std::vector<Member> members_;
};

}  // namespace tutti::faults
