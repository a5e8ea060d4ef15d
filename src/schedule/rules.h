// Settings that may say something else for each operation, in NCCL's grammar: "tree;all_reduce:ring,direct" is tree for
// all but all-reduce, and "^tree" all but tree. One grammar, for algorithms, protocols and numbers of channels.
#pragma once
#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_name.h"
#include "base/enum_table.h"
#include "base/error.h"
#include "schedule/algorithm.h"
#include "schedule/allowed.h"

namespace tutti::schedule {

// One part of such a text: a value for that operation, or for all that no part names.
struct RulePart {
  std::optional<Collective> operation;
  std::string_view value;
};

// The parts, none empty and no operation twice. Throws Error(kInvalidArgument), which says what may be written.
std::vector<RulePart> partsOf(std::string_view text);

// A list of names: "ring,tree" or "^ring,tree".
struct NameList {
  bool excludes = false;
  std::vector<std::string_view> names;
};
// Throws Error(kInvalidArgument) for an empty name, and for a ^ that is not in front.
NameList namesIn(std::string_view list);
// What an error may show of a text that may have any length.
std::string shown(std::string_view text);

// The other way of partsOf(): what most operations have stands for all that are not named. An empty text: nothing.
using TextsOfOperations = EnumTable<Collective, std::string, kCollectives>;
inline constexpr auto kEveryOperation = firstMembers<Collective, kCollectives>();
std::string joined(const TextsOfOperations& texts);

// `byName` throws what is to be said of a name that there is not; `every`: the members that there are.
template <class Enum, class ByName>
AllowedOf<Enum> readAllowed(std::string_view text, ByName byName, std::span<const Enum> every) {
  const NameList list = namesIn(text);
  std::vector<Enum> members;
  for (const std::string_view name : list.names) members.push_back(byName(name));
  const auto allowed = list.excludes ? AllowedOf<Enum>::allBut(members) : AllowedOf<Enum>::only(members);
  for (const Enum each : every)
    if (allowed.has(each)) return allowed;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' leaves none to choose from", shown(text)));
}

// A value for each operation that something was said of. Value() is as good as nothing said.
template <class Value>
class Rules {
 public:
  Rules() = default;
  // That for all.
  template <std::convertible_to<Value> All>
  Rules(const All& all) {
    values_.fill(Value(all));
  }
  // `read(value, operation or none)` makes one of a part's text, or throws Error(kInvalidArgument).
  template <class Read>
  static Rules parse(std::string_view text, Read read) {
    Rules made;
    std::optional<Value> rest;
    for (const RulePart& part : partsOf(text))
      (part.operation ? made.values_[*part.operation] : rest) = read(part.value, part.operation);
    for (auto& value : made.values_.values)
      if (!value) value = rest;
    return made;
  }

  Value of(Collective collective) const { return values_[collective].value_or(Value()); }
  bool says(Collective collective) const { return values_[collective].has_value(); }
  explicit operator bool() const { return *this != Rules(); }
  friend bool operator==(const Rules& a, const Rules& b) { return a.values_.values == b.values_.values; }

  // As a setting would say it: what means the same has the same text, "" where nothing is said. `write` makes the text
  // of a value.
  template <class Write>
  std::string text(Write write) const {
    TextsOfOperations texts;
    for (const Collective each : kEveryOperation)
      if (of(each) != Value()) texts[each] = write(of(each));
    return joined(texts);
  }

 private:
  EnumTable<Collective, std::optional<Value>, kCollectives> values_;
};

using Allowed = AllowedOf<Algorithm>;
static_assert(kMostAlgorithms <= Allowed::kMostMembers);

// "ring,tree", "^tree".
Allowed parseAllowed(std::string_view list);
std::string textOf(Allowed allowed);

// What counts for one request: `allowed`, where one of them can do what is asked for; otherwise all.
Allowed allowedFor(const Request& request, Allowed allowed);

using AlgorithmRules = Rules<Allowed>;
AlgorithmRules parseAlgorithms(std::string_view text);
std::string textOf(const AlgorithmRules& rules);

// 0: as many as pay.
using ChannelRules = Rules<int>;
inline constexpr int kMostChannels = 64;
ChannelRules parseChannels(std::string_view text);
std::string textOf(const ChannelRules& rules);

}  // namespace tutti::schedule
