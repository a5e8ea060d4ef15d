#include "schedule/rules.h"

#include <algorithm>
#include <charconv>

#include "base/plain_text.h"
#include "base/trimmed.h"

namespace tutti::schedule {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(text, std::forward<Args>(args)...));
}

std::string operationNames() {
  std::string names;
  for (const Collective each : kEveryOperation)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", commandName(each));
  return names;
}

RulePart partOf(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {std::nullopt, trimmed(text)};
  const std::string_view name = trimmed(text.substr(0, colon));
  const auto operation = operationCalled(name);
  if (!operation) refuse("'{}' is no operation; choose one of: {}", shown(name), operationNames());
  return {operation, trimmed(text.substr(colon + 1))};
}

int channelsFrom(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || stop != end || number < 0 || number > kMostChannels)
    refuse("'{}' is no number of channels; expected a whole number from 0 to {}", shown(text), kMostChannels);
  return number;
}

Allowed algorithmsFrom(std::string_view list, std::optional<Collective> operation) {
  if (operation == Collective::kSendRecv)
    refuse("'{}', but a message between two ranks has no algorithms; leave {} out", shown(list),
           commandName(*operation));
  return parseAllowed(list);
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr size_t kMostShown = 80;
  return plainText(text, kMostShown);
}

// As many parts as there are operations, and one more, can be right: a text of any length is soon refused.
std::vector<RulePart> partsOf(std::string_view text) {
  std::vector<RulePart> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const RulePart part = partOf(text.substr(at, end - at));
    if (part.value.empty())
      refuse("part {} of '{}' is empty; write a value for all, or operation:value, with ; between two",
             parts.size() + 1, shown(text));
    if (std::ranges::find(parts, part.operation, &RulePart::operation) != parts.end())
      refuse("'{}' has two values for {}; give one", shown(text),
             part.operation ? commandName(*part.operation) : "all operations that are not named");
    parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

// Where one has nothing there is no text for the rest: it would be for that one, too.
std::string joined(const TextsOfOperations& texts) {
  const auto times = [&](const std::string& text) { return std::ranges::count(texts.values, text); };
  const bool all = times("") == 0;
  const std::string usual = all ? *std::ranges::max_element(texts.values, {}, times) : "";
  std::string rules = usual;
  for (const Collective each : kEveryOperation)
    if (texts[each] != usual) rules += fmt::format("{}{}:{}", rules.empty() ? "" : ";", commandName(each), texts[each]);
  return rules;
}

NameList namesIn(std::string_view list) {
  const std::string_view text = trimmed(list);
  NameList made;
  made.excludes = text.starts_with('^');
  for (size_t at = made.excludes ? 1 : 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view name = trimmed(text.substr(at, end - at));
    if (name.empty()) refuse("'{}' has an empty name; write names with a comma between two", shown(list));
    if (name.starts_with('^'))
      refuse("'{}' has a ^ inside; put it in front of the list, where it is for all its names", shown(list));
    made.names.push_back(name);
    at = end + 1;
  }
  return made;
}

Allowed parseAllowed(std::string_view list) {
  const std::vector<Algorithm> every = allAlgorithms();
  return readAllowed<Algorithm>(list, algorithmByName, every);
}

std::string textOf(Allowed allowed) {
  const std::vector<Algorithm> every = allAlgorithms();
  return textOf<Algorithm>(allowed, every);
}

Allowed allowedFor(const Request& request, Allowed allowed) {
  const auto able = algorithmsFor(request);
  const bool any = std::ranges::any_of(able, [&](Algorithm each) { return allowed.has(each); });
  return any ? allowed : Allowed();
}

AlgorithmRules parseAlgorithms(std::string_view text) { return AlgorithmRules::parse(text, algorithmsFrom); }

std::string textOf(const AlgorithmRules& rules) {
  return rules.text([](Allowed allowed) { return textOf(allowed); });
}

ChannelRules parseChannels(std::string_view text) {
  return ChannelRules::parse(text, [](std::string_view value, auto) { return channelsFrom(value); });
}

std::string textOf(const ChannelRules& rules) {
  return rules.text([](int channels) { return fmt::to_string(channels); });
}

}  // namespace tutti::schedule
