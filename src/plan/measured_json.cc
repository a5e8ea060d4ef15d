#include "plan/measured_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/command_name.h"
#include "base/error.h"
#include "schedule/algorithm.h"

namespace tutti::plan {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMostGroups = 4096, kMostSizes = 256, kMostRanks = 1 << 20;
constexpr double kLongestUs = 1e12;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); }

Collective collectiveOf(const std::string& name) {
  for (int number = 0; number < kCollectives; ++number)
    if (const auto one = static_cast<Collective>(number); commandName(one) == name) return one;
  refuse(fmt::format("there is no operation called '{}'", name));
}

// Only what is written as a whole number: others need not fit.
size_t wholeNumber(const Json& json) {
  if (!json.is_number_unsigned()) refuse("needs whole numbers as ranks and as bytes");
  return json.get<size_t>();
}

// What all series of a group share.
Series headOf(const Json& group) {
  Series head;
  head.collective = collectiveOf(group.at("operation"));
  head.transport = group.at("transport");
  head.ranks = static_cast<int>(std::min(wholeNumber(group.at("ranks")), kMostRanks + 1));
  head.ranksPerCore = group.at("ranks_per_core");
  if (!group.at("bytes").is_array()) refuse("needs a list of bytes");
  for (const Json& bytes : group.at("bytes")) head.bytes.push_back(wholeNumber(bytes));
  const bool sane = head.ranks > 1 && size_t(head.ranks) <= kMostRanks && head.ranksPerCore >= 1 &&
                    head.ranksPerCore <= head.ranks && !head.bytes.empty() && head.bytes.size() <= kMostSizes &&
                    head.bytes.front() > 0;
  if (!sane || std::ranges::adjacent_find(head.bytes, std::greater_equal()) != head.bytes.end())
    refuse("needs 2 ranks or more, ranks_per_core from 1 to their number, and bytes that ascend from 1 or more");
  return head;
}

void takeGroup(std::vector<Series>& series, const Json& group) {
  const Series head = headOf(group);
  if (!group.at("us").is_object()) refuse("needs an object \"us\" with a list of times for each algorithm");
  for (const auto& [name, times] : group.at("us").items()) {
    Series one = head;
    one.algorithm = schedule::algorithmByName(name);
    const auto isNumber = [](const Json& time) { return time.is_number(); };
    if (times.is_array() && std::ranges::all_of(times, isNumber)) one.us = times.get<std::vector<double>>();
    const auto isTime = [](double us) { return us > 0 && us <= kLongestUs; };
    if (one.us.size() != one.bytes.size() || !std::ranges::all_of(one.us, isTime))
      refuse(fmt::format("needs for {} as many times above 0 as there are bytes", name));
    series.push_back(std::move(one));
  }
}

}  // namespace

Json jsonOf(const Measurements& measured) {
  std::map<std::tuple<Collective, std::string, int, double, std::vector<size_t>>, Json> groups;
  for (const Series& one : measured.series()) {
    Json& group = groups[{one.collective, one.transport, one.ranks, one.ranksPerCore, one.bytes}];
    if (group.is_null())
      group = {{"operation", commandName(one.collective)}, {"transport", one.transport}, {"ranks", one.ranks},
               {"ranks_per_core", one.ranksPerCore},       {"bytes", one.bytes},         {"us", Json::object()}};
    group["us"][std::string(schedule::nameOf(one.algorithm))] = one.us;
  }
  Json all = Json::array();
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

Measurements measuredFrom(const Json& json, const std::string& source) {
  if (!json.is_array() || json.size() > kMostGroups)
    refuse(fmt::format("{}: \"measured\" is to be a list of up to {} objects", source, kMostGroups));
  std::vector<Series> series;
  for (size_t i = 0; i < json.size(); ++i) try {
      takeGroup(series, json[i]);
    } catch (const Json::exception& error) {
      refuse(fmt::format("{}: number {} of \"measured\": {}", source, i, error.what()));
    } catch (const Error& error) {
      refuse(fmt::format("{}: number {} of \"measured\": {}", source, i, error.what()));
    }
  return Measurements(std::move(series));
}

}  // namespace tutti::plan
