// The symbolic run: what every buffer and slot holds after each step, and what is wrong with it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "proof/simulator.h"
#include "proof/symbolic_values.h"

namespace tutti::proof {

// Collects what is wrong, up to a bound: one mistake has many consequences and the first ones tell most.
class Problems {
 public:
  static constexpr size_t kMost = 12;
  void add(std::string text) {
    if (texts_.size() < kMost) texts_.push_back(std::move(text));
  }
  bool full() const noexcept { return texts_.size() >= kMost; }
  bool none() const noexcept { return texts_.empty(); }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
};

// Everything that can be said of the schedules without running them: agreement between ranks, indices in range,
// symmetric peers. The simulator and the trace rely on it.
void checkStructure(std::span<const Schedule> schedules, Problems& problems);

class Trace {
 public:
  Trace(std::span<const Schedule> schedules, const Wiring& wiring, int depth, int rounds, Problems& problems);

  // The step happens now; called in the simulator's order.
  void execute(int rank, const Step& step, int round);
  // After the last step: does every rank have what the collective promises, and nothing else?
  void checkResults();

 private:
  using Id = SymbolicValues::Id;
  struct Chunks {  // the contents of a slot or a scratch buffer
    uint32_t segment = 0, span = 0;
    int round = -1;
    Id first = SymbolicValues::kNothing;  // of a span of 1
    std::vector<Id> all;                  // of a longer one
    Id at(uint32_t i) const { return all.empty() ? first : all[i]; }
  };
  struct Promise {
    bool written = false;
    bool summed = false;
    int from = -1;  // whose input, if not summed
  };

  bool small(const Schedule& schedule, Operand::Kind kind) const noexcept;
  Promise promiseOf(int rank, uint32_t segment) const;
  Id& output(int rank, uint32_t segment, int round);
  void checkPlaces(int rank, const Step& step);
  void checkHolds(int rank, const Step& step, int round, Operand source, const Chunks& held);
  Id read(int rank, const Step& step, int round, Operand source, uint32_t i);
  Id readInput(int rank, uint32_t segment, int round);
  Id combine(int rank, const Step& step, int round, uint32_t i);
  void store(int rank, const Step& step, int round);
  void storeChunks(Chunks& chunks, const Step& step, int round);
  void checkResult(int rank, uint32_t segment, int round);
  void checkSameOrder(uint32_t segment, int round);
  void complain(int rank, const Step& step, int round, const std::string& what);

  std::span<const Schedule> schedules_;
  const Wiring& wiring_;
  uint64_t depth_;
  int rounds_;
  Problems& problems_;
  SymbolicValues values_;
  Collective collective_;
  std::vector<std::vector<Id>> outputs_;        // [rank][round × segments held + segment]
  std::vector<std::vector<Chunks>> scratches_;  // [rank][number]
  std::vector<std::vector<Chunks>> slots_;      // [link][number mod depth]
  std::vector<uint64_t> posted_, taken_;
  std::vector<Id> sources_, results_;
};

}  // namespace tutti::proof
