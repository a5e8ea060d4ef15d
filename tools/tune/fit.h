// Prices by which the library chooses well on a sweep's machine.
#pragma once
#include "plan/profile.h"
#include "tune/model.h"

namespace tutti::tune {

// How well prices do on a sweep.
struct Score {
  double regret = 0;    // mean over cells of ln(time of the choice / least time): 0 where every choice is the fastest
  double error = 0;     // mean over cells and algorithms of |ln(predicted / measured)|
  double nearBest = 0;  // part of the cells whose choice takes at most kNear times the least time
  // What a fit makes small: choosing is what prices are for; predictions keep them honest where nothing is to choose.
  double toMinimize() const { return regret + error / 10; }
};
inline constexpr double kNear = 1.1;

Score scoreOf(const Sweep& sweep, Model& model, const plan::Profile& prices);

// From the prices that the library ships with, one price after the other by ever smaller factors, as long as that makes
// the score better (a pattern search: the score has steps, and no derivative). How far a price moves has a price of its
// own, so that what the sweep says nothing of keeps its value.
plan::Profile fitted(const Sweep& sweep);

}  // namespace tutti::tune
