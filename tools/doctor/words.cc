#include "doctor/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::doctor {

std::string listRanks(const std::vector<int>& ranks) {
  constexpr int kMostItems = 16;
  std::string text;
  int items = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (items++ == kMostItems) return fmt::format("{} and {} more", text, ranks.size() - i);
    if (!text.empty()) text += ", ";
    text += end - i > 2 ? fmt::format("{}-{}", ranks[i], ranks[end - 1]) : fmt::format("{}", ranks[i]);
    i = end - i > 2 ? end : i + 1;
  }
  return text;
}

std::string namesOf(const std::vector<int>& ranks) {
  return fmt::format("{} {}", agree(ranks, "rank", "ranks"), listRanks(ranks));
}

std::string nameOf(const Job& job, int rank) {
  const Person& person = job.people[static_cast<size_t>(rank)];
  return fmt::format("rank {} (host {}, pid {})", rank, person.host, person.pid);
}

const char* agree(const std::vector<int>& ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

std::string title(const Call& call) {
  if (call.line == Line::kCollective) return fmt::format("{} #{}", tutti::nameOf(call.kind), call.number);
  return fmt::format("{} #{} {} rank {}", nameOf(call.line), call.number, call.line == Line::kSend ? "to" : "from",
                     call.peer.value_or(-1));
}

std::string describe(const Call& call) {
  if (call.kind == Collective::kBarrier) return title(call);
  std::string text = fmt::format("{} ({}", title(call), tutti::nameOf(call.type));
  // Where every rank has its own count, the record has none.
  if (!countsArePrivate(call.kind)) text += ", " + sizeText(call.bytes);
  // Where the parts differ, the record has their sum.
  if (call.kind == Collective::kAllGatherV || call.kind == Collective::kReduceScatterV) text += " in all";
  if (call.op) text += fmt::format(", {}", tutti::nameOf(*call.op));
  if (call.root) text += fmt::format(", root {}", *call.root);
  return text + ")";
}

std::string elementsText(uint64_t count, std::string_view type) {
  return fmt::format("{} {}{}element{}", count, type, type.empty() ? "" : " ", count == 1 ? "" : "s");
}

std::string sizeText(uint64_t bytes) {
  if (bytes == 1) return "1 byte";
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  return whole ? fmt::format("{:.0f} {}", value, kUnits[unit]) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string timeText(int64_t nanoseconds) {
  const auto ns = static_cast<double>(nanoseconds);
  const auto scaled = [](double value, const char* unit) {
    return value < 10 ? fmt::format("{:.1f} {}", value, unit) : fmt::format("{:.0f} {}", value, unit);
  };
  if (ns < 1e6) return scaled(ns / 1e3, "us");
  if (ns < 1e9) return scaled(ns / 1e6, "ms");
  if (ns < 600e9) return scaled(ns / 1e9, "s");
  return scaled(ns / 60e9, "min");
}

namespace {

// A character of UTF-8 has one byte that is no continuation.
size_t widthOf(std::string_view word) {
  return static_cast<size_t>(std::ranges::count_if(word, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string wrapped(std::string_view sentence, size_t width) {
  constexpr std::string_view kBreak = "\n  ";
  constexpr size_t kIndent = kBreak.size() - 1;
  std::string text;
  size_t column = 0;
  while (!sentence.empty()) {
    const std::string_view word = sentence.substr(0, sentence.find(' '));
    sentence.remove_prefix(std::min(sentence.size(), word.size() + 1));
    const bool breaks = column > 0 && column + 1 + widthOf(word) > width;
    const std::string_view before = breaks ? kBreak : column > 0 ? " " : "";
    text.append(before).append(word);
    column = (breaks ? kIndent : column + before.size()) + widthOf(word);
  }
  return text + "\n";
}

}  // namespace tutti::doctor
