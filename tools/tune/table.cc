#include "tune/table.h"

#include <fmt/format.h>

#include <cmath>

#include "tune/fit.h"

namespace tutti::tune {
namespace {

std::string lineOf(const Cell& cell, const Model& model) {
  const auto chosen = model.choice(cell), fastest = cell.fastest();
  return fmt::format("{:<16}{:<6}{:>6}{:>11}  {:<14}{:>10.1f}{:>11.1f}  {:<14}{:>10.1f}{:>7.2f}\n",
                     commandName(cell.collective), cell.transport, cell.ranks, cell.bytes, nameOf(chosen),
                     cell.us(chosen), model.predictedUs(cell, chosen), nameOf(fastest), cell.us(fastest),
                     cell.us(chosen) / cell.us(fastest));
}

std::string summary(const Sweep& sweep, const Score& score) {
  return fmt::format(
      "{} cells: {:.1f} % of the choices are the fastest or within {:.0f} % of it; choices take {:.2f} times the least "
      "time, predictions are off by a factor of {:.2f} (geometric means)\n",
      sweep.cells.size(), 100 * score.nearBest, 100 * (kNear - 1), std::exp(score.regret), std::exp(score.error));
}

}  // namespace

std::string tableOf(const Sweep& sweep, const plan::Profile& prices, bool all) {
  Model model(sweep);
  const Score score = scoreOf(sweep, model, prices);
  std::string lines;
  for (const Cell& cell : sweep.cells)
    if (all || cell.us(model.choice(cell)) > kNear * cell.us(cell.fastest())) lines += lineOf(cell, model);
  std::string text = fmt::format("{}; microseconds of a call, medians of all rounds\n", sweep.about);
  if (!lines.empty())
    text += fmt::format("{:<16}{:<6}{:>6}{:>11}  {:<14}{:>10}{:>11}  {:<14}{:>10}{:>7}\n", "operation", "over", "ranks",
                        "bytes", "chosen", "takes", "predicted", "fastest", "takes", "ratio");
  return text + lines + summary(sweep, score);
}

}  // namespace tutti::tune
