#include "perf/extras.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/spelling.h"

namespace tutti::perf {
namespace {

// The option with two dashes that looks most like `typed`, or of which that is the beginning; empty: none is near.
std::string nearestTo(const std::string& typed, const CLI::App& app) {
  const std::string_view name = std::string_view(typed).substr(0, typed.find('='));
  if (name.size() < 4) return "";
  std::string nearest;
  size_t least = name.size() / 3 + 1;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& one : option->get_lnames()) {
      const size_t far = ("--" + one).starts_with(name) ? 0 : spellingDistance(name, "--" + one);
      if (far < least) nearest = "--" + one, least = far;
    }
  return nearest;
}

// CLI11 hands them over in an order of its own, and a bundle of short options in pieces, which are nowhere in the line.
std::vector<std::string> asTyped(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> extras = app.remaining(), typed;
  for (int i = 1; i < argc; ++i) {
    const CLI::Option* option = *argv[i] == '-' ? app.get_option_no_throw(argv[i]) : nullptr;
    if (option != nullptr && option->get_expected_min() > 0) ++i;  // its value may be the same text as an extra
    if (option != nullptr) continue;
    const auto found = std::ranges::find(extras, argv[i]);
    if (found == extras.end()) continue;
    typed.push_back(*found);
    extras.erase(found);
  }
  typed.insert(typed.end(), extras.begin(), extras.end());
  return typed;
}

}  // namespace

std::string extrasText(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> typed = asTyped(app, argc, argv);
  for (const std::string& one : typed)
    if (const std::string nearest = nearestTo(one, app); one.starts_with("--") && !nearest.empty())
      return fmt::format("what is {}? Did you mean {}?", fmt::join(typed, " "), nearest);
  return fmt::format("what is {}? There is no such option", fmt::join(typed, " "));
}

}  // namespace tutti::perf
