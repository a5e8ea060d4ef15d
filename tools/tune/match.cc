#include "tune/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/plain_text.h"
#include "tune/fit.h"

namespace tutti::tune {

using Json = nlohmann::ordered_json;
using schedule::Algorithm;

namespace {

constexpr int kMostCalls = 5000;
constexpr double kMostRatio = 1e6;  // of the times of two algorithms
constexpr size_t kLongestTold = 200;

// From the fastest on.
std::vector<Algorithm> othersThan(Algorithm choice, const Cell& cell) {
  std::vector<Algorithm> others;
  for (const auto& [algorithm, rounds] : cell.times)
    if (algorithm != choice) others.push_back(algorithm);
  std::ranges::stable_sort(others, {}, [&](Algorithm each) { return cell.us(each); });
  return others;
}

std::vector<Bout> boutsOf(const Cell& cell, Algorithm choice) {
  const double most = kContends * cell.us(cell.fastest());
  std::vector<Bout> bouts;
  for (const Algorithm other : othersThan(choice, cell))
    if (bouts.empty() || cell.us(other) <= most) bouts.push_back({other, {}, Verdict::kOpen});
  return bouts;
}

}  // namespace

Match::Match(const Cell& cell, Algorithm choice, double seconds)
    : choice_(choice),
      bouts_(boutsOf(cell, choice)),
      calls_(static_cast<int>(std::clamp(kBlockUs / cell.us(cell.fastest()), 1.0, double{kMostCalls}))),
      usLeft_(seconds * 1e6) {
  look();
}

void Match::settle(const std::vector<double>& us) {
  calls_ = static_cast<int>(std::clamp(kBlockUs / std::ranges::min(us), 1.0, double(calls_)));
}

std::vector<size_t> Match::order() const {
  std::vector<size_t> once = {0};
  for (size_t i = 0; i < bouts_.size(); ++i)
    if (bouts_[i].verdict == Verdict::kOpen) once.push_back(i + 1);
  std::ranges::rotate(once, once.begin() + static_cast<std::ptrdiff_t>(rounds_ % once.size()));
  std::vector<size_t> round = once;
  round.insert(round.end(), once.rbegin(), once.rend());
  return round;
}

void Match::add(const std::vector<double>& us) {
  const std::vector<size_t> timed = order();
  std::vector<double> sums(bouts_.size() + 1);
  for (size_t i = 0; i < timed.size(); ++i) {
    sums[timed[i]] += us[i];
    usLeft_ -= us[i] * calls_;
  }
  for (size_t i = 0; i < bouts_.size(); ++i)
    if (bouts_[i].verdict == Verdict::kOpen) bouts_[i].ratios.push_back(sums[0] / sums[i + 1]);
  ++rounds_;
  if (std::ranges::find(kLooks, rounds_) != kLooks.end()) look();
}

void Match::look() {
  for (Bout& bout : bouts_)
    if (bout.verdict == Verdict::kOpen && !bout.ratios.empty()) bout.verdict = judged(medianOf(bout.ratios), kNear);
  const auto are = [&](Verdict verdict) { return std::ranges::count(bouts_, verdict, &Bout::verdict); };
  const bool last = rounds_ > 0 && (usLeft_ <= 0 || rounds_ == kLooks.back());
  over_ = last || are(Verdict::kMissed) > 0 || are(Verdict::kOpen) == 0;
}

Verdict Outcome::verdict() const noexcept {
  Verdict worst = Verdict::kWithin;
  for (const Bout& bout : bouts) {
    if (bout.verdict == Verdict::kMissed) return Verdict::kMissed;
    if (bout.verdict == Verdict::kOpen) worst = Verdict::kOpen;
  }
  return worst;
}

const Bout* Outcome::hardest() const {
  const auto worst = std::ranges::max_element(bouts, {}, [](const Bout& bout) { return medianOf(bout.ratios).median; });
  return worst == bouts.end() ? nullptr : &*worst;
}

Outcome outcomeOf(const Cell& cell, const Match& match) {
  return {cell.collective, cell.transport, cell.ranks, cell.bytes, match.choice(), match.bouts()};
}

std::string toLine(const Outcome& outcome) {
  Json bouts = Json::object();
  for (const Bout& bout : outcome.bouts) bouts[std::string(nameOf(bout.contender))] = bout.ratios;
  return Json{{"operation", commandName(outcome.collective)},
              {"transport", outcome.transport},
              {"ranks", outcome.ranks},
              {"bytes", outcome.bytes},
              {"choice", nameOf(outcome.choice)},
              {"ratios", bouts}}
      .dump();
}

Outcome outcomeFrom(const std::string& line) try {
  const Json json = Json::parse(line);
  Outcome outcome{collectiveByCommand(json.at("operation")),
                  json.at("transport"),
                  json.at("ranks"),
                  json.at("bytes"),
                  schedule::algorithmByName(json.at("choice").get<std::string>()),
                  {}};
  for (const auto& [name, ratios] : json.at("ratios").items()) {
    Bout bout{schedule::algorithmByName(name), ratios.get<std::vector<double>>(), Verdict::kOpen};
    if (bout.ratios.empty() || bout.ratios.size() > kLooks.back())
      throw Error(ErrorCode::kSystem, fmt::format("a bout has from 1 to {} ratios", kLooks.back()));
    if (!std::ranges::all_of(bout.ratios, [](double ratio) { return ratio > 0 && ratio <= kMostRatio; }))
      throw Error(ErrorCode::kSystem, "a ratio is of two times, and above 0");
    bout.verdict = judged(medianOf(bout.ratios), kNear);
    outcome.bouts.push_back(std::move(bout));
  }
  return outcome;
} catch (const std::exception& error) {
  throw Error(ErrorCode::kSystem, fmt::format("this is no outcome of a match: {} ({})", plainText(line, kLongestTold),
                                              plainText(error.what(), kLongestTold)));
}

std::string titleOf(const Cell& cell) {
  return fmt::format("{} {} {} {}", commandName(cell.collective), cell.transport, cell.ranks, cell.bytes);
}

std::vector<Cell> pickedFrom(const Sweep& sweep, const std::string& expression, size_t most) try {
  const std::regex wanted(expression);
  std::vector<Cell> fit;
  for (const Cell& cell : sweep.cells)
    if (cell.times.size() > 1 && std::regex_search(titleOf(cell), wanted)) fit.push_back(cell);
  if (fit.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--cells {}: no cell of the sweep is called so; the first is called '{}'", expression,
                            titleOf(sweep.cells.front())));
  if (most == 0 || most >= fit.size()) return fit;
  std::vector<Cell> some;
  for (size_t i = 0; i < most; ++i) some.push_back(fit[i * fit.size() / most]);
  return some;
} catch (const std::regex_error& error) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("--cells {}: {}", expression, error.what()));
}

}  // namespace tutti::tune
