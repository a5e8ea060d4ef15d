#include "tune/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ranges>

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

// Whatever is missing or of another type throws.
Cell cellOf(const Json& json) {
  Cell cell;
  cell.collective = collectiveByCommand(json.at("operation"));
  cell.transport = json.at("transport");
  cell.ranks = json.at("ranks");
  cell.bytes = json.at("bytes");
  for (const auto& [name, rounds] : json.at("times_us").items()) {
    const Algorithm algorithm = schedule::algorithmByName(name);
    if (!schedule::rowOf(algorithm).has(cell.collective))
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{} has no {}", nameOf(cell.collective), name));
    cell.times[algorithm] = rounds.get<std::vector<double>>();
  }
  const auto isTime = [](double us) { return us > 0 && us < 1e12; };
  const bool whole = !cell.times.empty() && std::ranges::all_of(cell.times | std::views::values, [&](const auto& of) {
    return !of.empty() && std::ranges::all_of(of, isTime);
  });
  const bool known = cell.transport == "p2p" || cell.transport == "shm" || cell.transport == "tcp";
  constexpr size_t kMostBytes = size_t{1} << 44;  // times the ranks they have to be a size still
  if (!whole || !known || cell.ranks < 2 || cell.ranks > 4096 || cell.bytes > kMostBytes)
    throw Error(ErrorCode::kInvalidArgument,
                "a cell without times, or of ranks, bytes or a transport that there are none of");
  return cell;
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
  Sweep sweep{whole.at("about"), whole.at("cores"), {}};
  for (const Json& cell : whole.at("cells")) sweep.cells.push_back(cellOf(cell));
  if (sweep.cells.empty()) throw Error(ErrorCode::kInvalidArgument, "a sweep without cells");
  return sweep;
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
