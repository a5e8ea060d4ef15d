// The match of one cell: what the plan chose against whatever may be faster, as a sweep shows it. Pure: it says who is
// to be timed, is told the times, and says when it knows enough. So all ranks have the same match, by the same times.
//
// In a round each is timed twice, in an order that is the same backwards, and begins with another each round: what gets
// slower or faster meanwhile, and who comes after whom, is for all alike. A round's ratio is that of the sums.
#pragma once
#include <string>
#include <vector>

#include "tune/judge.h"
#include "tune/sweep.h"

namespace tutti::tune {

// Who has a chance to be faster: up to this much slower than the fastest in the sweep.
inline constexpr double kContends = 1.4;
inline constexpr double kBlockUs = 3000;  // that one is timed for at a time, and more where one call takes longer

// One that the choice was up against.
struct Bout {
  schedule::Algorithm contender = schedule::Algorithm::kRing;
  std::vector<double> ratios;  // of the choice's time to the contender's, one a round
  Verdict verdict = Verdict::kOpen;
};

class Match {
 public:
  // `choice`: what the plan took, which need not be in the sweep; against all contenders, or, where there are none, the
  // fastest of the others, so that every cell is judged by new times. `seconds`: after so many, as add() was told, a
  // look is the last one, whatever it shows.
  Match(const Cell& cell, schedule::Algorithm choice, double seconds);

  // In a loop: how many calls are timed at a time.
  int calls() const noexcept { return calls_; }
  // Of a round that does not count, as add() is given them: where all take longer than the sweep has it, fewer calls
  // do.
  void settle(const std::vector<double>& us);
  // The choice is 0, contender i of bouts() is i + 1. In the order of a round, those that are decided left out.
  std::vector<size_t> order() const;
  // Of one round, microseconds of a call, as order() has them.
  void add(const std::vector<double>& us);
  // Whether all is known: also after a miss, which is one whatever the others would show.
  bool over() const noexcept { return over_; }

  schedule::Algorithm choice() const noexcept { return choice_; }
  const std::vector<Bout>& bouts() const noexcept { return bouts_; }
  size_t rounds() const noexcept { return rounds_; }

 private:
  void look();

  schedule::Algorithm choice_;
  std::vector<Bout> bouts_;
  int calls_;
  double usLeft_;
  size_t rounds_ = 0;
  bool over_ = false;
};

// What came of a match.
struct Outcome {
  Collective collective = Collective::kAllReduce;
  std::string transport;
  int ranks = 2;
  size_t bytes = 0;
  schedule::Algorithm choice = schedule::Algorithm::kRing;
  std::vector<Bout> bouts;

  // kWithin: none of the contenders is faster by more than the limit. Without any it is that.
  Verdict verdict() const noexcept;
  // Against whom the choice does worst.
  const Bout* hardest() const;
};
Outcome outcomeOf(const Cell& cell, const Match& match);

// One line of JSON; and back: throws Error(kSystem) for what is none.
std::string toLine(const Outcome& outcome);
Outcome outcomeFrom(const std::string& line);

// "all_reduce shm 4 32768", by which cells are picked.
std::string titleOf(const Cell& cell);
// The cells whose titles have something that fits the expression, and of these `most`, spread evenly; 0: all. Throws
// Error(kInvalidArgument) for no expression, and where nothing fits.
std::vector<Cell> pickedFrom(const Sweep& sweep, const std::string& expression, size_t most);

}  // namespace tutti::tune
