// The plans that a communicator has made, of its host or of its GPU: each once, and found at once where it was asked
// for lately.
//
// A call asks by a few words (PlanQuestion). What answers it depends on nothing else, so for a question that is asked
// again nothing is chosen. Many questions (such as lengths) have one answer: plans are kept by what was chosen (Key).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "base/types.h"

namespace tutti::comm {

struct PlanQuestion {
  uint64_t kind = ~uint64_t{0};
  size_t bytes = 0;

  // `place`: the root, or a peer; `wish`: what the call asks of its plan, in the lower 24 bits; `inRankOrder`: as of
  // schedule::Request; `streamed`: for a GPU, in streams.
  static PlanQuestion of(Collective collective, int place, size_t bytes, uint32_t wish = 0, bool inRankOrder = false,
                         bool streamed = false) noexcept {
    const uint64_t first =
        uint64_t{wish} << 8 | static_cast<uint64_t>(collective) << 2 | (inRankOrder ? 2 : 0) | (streamed ? 1 : 0);
    return {first << 32 | static_cast<uint32_t>(place), bytes};
  }
  friend bool operator==(const PlanQuestion&, const PlanQuestion&) = default;
};

// One thread at a time. Plans stay where they are, as long as the cache does.
template <class Key, class Plan>
class PlanCache {
 public:
  // The plan for the question; where it was not asked lately, that which choose() returns, one of made().
  template <class Choose>
  Plan& find(const PlanQuestion& question, Choose choose) {
    Recent& recent = recent_[placeOf(question)];
    if (recent.plan == nullptr || recent.question != question) recent = {question, &choose()};
    return *recent.plan;
  }
  // The plan for the question, where it was asked lately; else null.
  Plan* recent(const PlanQuestion& question) noexcept {
    const Recent& recent = recent_[placeOf(question)];
    return recent.question == question ? recent.plan : nullptr;
  }
  // The plan of that choice, which make() makes when there is none yet. Throws what make() does, and keeps nothing.
  template <class Make>
  Plan& made(const Key& key, Make make) {
    auto& plan = plans_[key];
    if (!plan) plan = make();
    return *plan;
  }

 private:
  struct Recent {
    PlanQuestion question;
    Plan* plan = nullptr;
  };
  static constexpr size_t kRecent = 256;
  static size_t placeOf(const PlanQuestion& question) noexcept {
    const uint64_t hash = (question.kind * 0x9e3779b97f4a7c15 ^ question.bytes) * 0xbf58476d1ce4e5b9;
    return hash >> 56;
  }

  std::array<Recent, kRecent> recent_;  // each at the place of its question's hash
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace tutti::comm
