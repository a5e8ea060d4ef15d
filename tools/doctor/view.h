// The records of one communicator, laid side by side.
#pragma once
#include <map>
#include <vector>

#include "doctor/records.h"

namespace tutti::doctor {

class View {
 public:
  explicit View(const Job& job);

  struct Entry {
    int rank;
    const Call* call;
  };
  const Job& job() const noexcept { return job_; }
  // Null for a rank without a record.
  const Record* record(int rank) const noexcept { return byRank_[static_cast<size_t>(rank)]; }
  const std::vector<int>& missing() const noexcept { return missing_; }
  // Each collective that is in any record, by its number; its entries by rank.
  const std::map<uint64_t, std::vector<Entry>>& collectives() const noexcept { return collectives_; }
  // The last collective that the rank made, null if none; and the last call of any kind.
  const Call* lastCollective(int rank) const noexcept;
  const Call* lastCall(int rank) const noexcept;
  // The call that holds the rank up: the first that is under way, else the first that is queued. Null when it is idle.
  const Call* current(int rank) const noexcept;
  // A job that runs well is caught in the middle of calls too: without an error, so short a wait says nothing.
  bool isYoung(int64_t waitedNs) const noexcept { return !anyFailure_ && waitedNs < kPatienceNs; }

 private:
  static constexpr int64_t kPatienceNs = 1'000'000'000;
  const Job& job_;
  bool anyFailure_;
  std::vector<const Record*> byRank_;
  std::vector<int> missing_;
  std::map<uint64_t, std::vector<Entry>> collectives_;
};

// How long the rank had been in this call when its record was written; 0 where its clock was turned back.
int64_t timeIn(const Record& record, const Call& call) noexcept;

}  // namespace tutti::doctor
