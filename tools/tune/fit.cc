#include "tune/fit.h"

#include <algorithm>
#include <cmath>

#include "plan/profile_prices.h"

namespace tutti::tune {
namespace {

// Less is noise, and what is fitted to it is worth nothing elsewhere.
constexpr double kWorthIt = 1e-4;
constexpr double kMove = 1e-3;  // a price that moves by a factor of e
constexpr double kFactors[] = {4, 2, 1.4, 1.2, 1.1, 1.05};

class Search {
 public:
  explicit Search(const Sweep& sweep) : sweep_(sweep), model_(sweep), best_(totalOf(prices_)) {}

  plan::Profile run() {
    for (const double factor : kFactors)
      while (pass(factor)) {
      }
    return prices_;
  }

 private:
  double totalOf(plan::Profile prices) {
    plan::Profile shipped;
    double moved = 0;
    for (const plan::Price& price : plan::kPrices) moved += std::abs(std::log(price.of(prices) / price.of(shipped)));
    return scoreOf(sweep_, model_, prices).toMinimize() + kMove * moved;
  }

  bool pass(double factor) {
    bool better = false;
    for (const plan::Price& price : plan::kPrices)
      better = tryPrice(price, factor) || tryPrice(price, 1 / factor) || better;
    return better;
  }

  bool tryPrice(const plan::Price& price, double factor) {
    plan::Profile tried = prices_;
    double& value = price.of(tried);
    value = std::clamp(value * factor, price.low, price.high);
    const double total = totalOf(tried);
    if (total > best_ - kWorthIt) return false;
    best_ = total;
    prices_ = tried;
    return true;
  }

  const Sweep& sweep_;
  Model model_;
  plan::Profile prices_;
  double best_;
};

}  // namespace

Score scoreOf(const Sweep& sweep, Model& model, const plan::Profile& prices) {
  model.price(prices);
  Score score;
  double predictions = 0;
  for (const Cell& cell : sweep.cells) {
    const double ratio = cell.us(model.choice(cell)) / cell.us(cell.fastest());
    score.regret += std::log(ratio);
    score.nearBest += ratio <= kNear ? 1 : 0;
    for (const auto& [algorithm, rounds] : cell.times) {
      score.error += std::abs(std::log(model.predictedUs(cell, algorithm) / cell.us(algorithm)));
      ++predictions;
    }
  }
  const auto cells = static_cast<double>(sweep.cells.size());
  return {score.regret / cells, score.error / predictions, score.nearBest / cells};
}

plan::Profile fitted(const Sweep& sweep) { return Search(sweep).run(); }

}  // namespace tutti::tune
