#include "tune/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace tutti::tune {

using Json = nlohmann::ordered_json;
using schedule::Algorithm;

namespace {

constexpr const char* kSweepFormat = "tutti_sweep";
constexpr int kSweepVersion = 1;

Json describe(const Cell& cell) {
  Json times = Json::object();
  for (const auto& [algorithm, rounds] : cell.times) times[std::string(nameOf(algorithm))] = rounds;
  return {{"operation", commandName(cell.collective)},
          {"transport", cell.transport},
          {"ranks", cell.ranks},
          {"bytes", cell.bytes},
          {"times_us", times}};
}

// More than any machine has; times the ranks, bytes have to be a size still.
constexpr int64_t kMostBytes = int64_t{1} << 44, kMostRanks = 4096, kMostCores = 1 << 16;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); }

int64_t wholeNumber(const Json& json, const char* key, int64_t least, int64_t most) {
  const Json& number = json.at(key);
  // A number above what int64_t holds is unsigned, and below 0 as the other.
  if (!number.is_number_integer() || number.get<int64_t>() < least || number.get<int64_t>() > most)
    refuse(fmt::format("{} is to be a whole number from {} to {}, not {}", key, least, most, number.dump()));
  return number.get<int64_t>();
}

std::vector<double> timesOf(const std::string& algorithm, const Json& rounds) {
  const auto isTime = [](const Json& us) { return us.is_number() && us.get<double>() > 0 && us.get<double>() < 1e12; };
  if (!rounds.is_array() || rounds.empty() || !std::ranges::all_of(rounds, isTime))
    refuse(fmt::format("times_us of {} are to be a list of microseconds above 0", algorithm));
  return rounds.get<std::vector<double>>();
}

// Whatever is missing or of another type throws.
Cell cellOf(const Json& json) {
  Cell cell;
  cell.collective = collectiveByCommand(json.at("operation"));
  cell.transport = json.at("transport");
  if (cell.transport != "p2p" && cell.transport != "shm" && cell.transport != "tcp")
    refuse(fmt::format("the transport is to be p2p, shm or tcp, not {}", json.at("transport").dump()));
  cell.ranks = static_cast<int>(wholeNumber(json, "ranks", 2, kMostRanks));
  cell.bytes = static_cast<size_t>(wholeNumber(json, "bytes", 1, kMostBytes));
  for (const auto& [name, rounds] : json.at("times_us").items()) {
    const Algorithm algorithm = schedule::algorithmByName(name);
    if (!schedule::rowOf(algorithm).has(cell.collective))
      refuse(fmt::format("{} has no {}", nameOf(cell.collective), name));
    cell.times[algorithm] = timesOf(name, rounds);
  }
  if (cell.times.empty()) refuse("times_us has no algorithm");
  return cell;
}

// Throws Error that says of which cell.
std::vector<Cell> cellsOf(const Json& list) {
  if (!list.is_array() || list.empty()) refuse("a sweep without cells");
  std::vector<Cell> cells;
  std::map<std::tuple<Collective, std::string, int, size_t>, size_t> places;
  for (const Json& json : list) try {
      if (!json.is_object()) refuse("is no object");
      Cell cell = cellOf(json);
      const auto [first, isNew] =
          places.try_emplace({cell.collective, cell.transport, cell.ranks, cell.bytes}, cells.size() + 1);
      if (!isNew) refuse(fmt::format("has the operation, transport, ranks and bytes of cell {}", first->second));
      cells.push_back(std::move(cell));
    } catch (const Error& error) {
      refuse(fmt::format("cell {}: {}", cells.size() + 1, error.what()));
    }
  return cells;
}

}  // namespace

double Cell::us(Algorithm algorithm) const {
  std::vector<double> rounds = times.at(algorithm);
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::ranges::nth_element(rounds, middle);
  return *middle;
}

Algorithm Cell::fastest() const {
  return std::ranges::min(times | std::views::keys, {}, [this](Algorithm algorithm) { return us(algorithm); });
}

std::string toJson(const Sweep& sweep) {
  Json cells = Json::array();
  for (const Cell& cell : sweep.cells) cells.push_back(describe(cell));
  const Json whole = {{kSweepFormat, kSweepVersion}, {"about", sweep.about}, {"cores", sweep.cores}, {"cells", cells}};
  return whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Sweep readSweep(const std::string& path) try {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) || !file)
    throw Error(ErrorCode::kInvalidArgument, "cannot be read");
  const Json whole = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  if (whole.at(kSweepFormat) != kSweepVersion) throw Error(ErrorCode::kInvalidArgument, "a sweep of another version");
  const auto cores = static_cast<uint32_t>(wholeNumber(whole, "cores", 1, kMostCores));
  return {whole.at("about"), cores, cellsOf(whole.at("cells"))};
} catch (const Json::exception& error) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: no sweep, which `tutti-tune measure` writes: {}", path, error.what()));
} catch (const Error& error) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, error.what()));
}

std::vector<Algorithm> alternatives(Collective collective) {
  auto all = schedule::algorithmsFor(collective);
  std::erase(all, Algorithm::kHierarchical);
  return all;
}

std::vector<Collective> tunable() {
  std::vector<Collective> found;
  for (int number = 0; number < kCollectives; ++number) {
    const auto collective = static_cast<Collective>(number);
    const bool plain = plainOf(collective) == collective && collective != Collective::kSendRecv;
    if (plain && alternatives(collective).size() > 1) found.push_back(collective);
  }
  return found;
}

Collective collectiveByCommand(const std::string& name) {
  std::string names;
  for (const Collective collective : tunable()) {
    if (commandName(collective) == name) return collective;
    names += (names.empty() ? "" : ", ") + commandName(collective);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: no operation with algorithms to choose from; there are {}", name, names));
}

}  // namespace tutti::tune
