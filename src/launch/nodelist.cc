#include "launch/nodelist.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace tutti::control {
namespace {

constexpr size_t kMost = size_t{1} << 16;  // more is a mistake, and would only fill the memory

struct List {
  const char* variable;
  const std::string& text;
  [[noreturn]] void refuse(const char* why) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}={}: {}", variable, text, why));
  }
  uint32_t number(std::string_view digits) const {
    uint32_t value = 0;
    const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure != std::errc() || stop != digits.data() + digits.size()) refuse("expected a number in the list");
    return value;
  }
};

// The pieces between commas that stand in no bracket.
std::vector<std::string_view> split(const List& list, std::string_view text) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (i == begin) list.refuse("an item is empty");
      pieces.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '[') {
      if (++depth > 1) list.refuse("brackets within brackets");
    } else if (text[i] == ']') {
      if (--depth < 0) list.refuse("a bracket closes that was not opened");
    }
  }
  if (depth != 0) list.refuse("a bracket is not closed");
  return pieces;
}

// "1-3" or "07": numbers keep the width of the first.
std::vector<std::string> expandRange(const List& list, std::string_view range) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const uint32_t low = list.number(first);
  const uint32_t high = dash == std::string_view::npos ? low : list.number(range.substr(dash + 1));
  if (high < low) list.refuse("a range ends before it begins");
  if (high - low >= kMost) list.refuse("that are too many nodes");
  std::vector<std::string> numbers;
  for (uint64_t n = low; n <= high; ++n) numbers.push_back(fmt::format("{:0{}}", n, first.size()));
  return numbers;
}

// A name may have several brackets: "r[1-2]n[1-4]".
void expandInto(const List& list, const std::string& before, std::string_view rest, std::vector<std::string>& out) {
  const size_t open = rest.find('[');
  if (open == std::string_view::npos) {
    if (out.size() >= kMost) list.refuse("that are too many nodes");
    out.push_back(before + std::string(rest));
    return;
  }
  const size_t close = rest.find(']', open);
  const std::string head = before + std::string(rest.substr(0, open));
  for (const std::string_view range : split(list, rest.substr(open + 1, close - open - 1)))
    for (const std::string& number : expandRange(list, range))
      expandInto(list, head + number, rest.substr(close + 1), out);
}

}  // namespace

std::vector<std::string> expandNodes(const char* variable, const std::string& text) {
  const List list{variable, text};
  std::vector<std::string> nodes;
  for (const std::string_view piece : split(list, text)) expandInto(list, "", piece, nodes);
  return nodes;
}

std::vector<int> expandCounts(const char* variable, const std::string& text) {
  const List list{variable, text};
  std::vector<int> counts;
  for (const std::string_view piece : split(list, text)) {
    const size_t times = piece.find("(x");
    uint32_t repeats = 1;
    if (times != std::string_view::npos) {
      if (piece.back() != ')') list.refuse("expected a list such as 4(x2),3");
      repeats = list.number(piece.substr(times + 2, piece.size() - times - 3));
    }
    const uint32_t count = list.number(piece.substr(0, times));
    if (count > kMost || repeats > kMost || counts.size() + repeats > kMost) list.refuse("that are too many tasks");
    counts.insert(counts.end(), repeats, static_cast<int>(count));
  }
  return counts;
}

}  // namespace tutti::control
