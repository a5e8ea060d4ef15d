#include "doctor/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "doctor/spans.h"
#include "doctor/view.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

using Row = std::vector<std::string>;

std::string progressOf(const Call& call) {
  return call.rounds > 1 ? fmt::format(", {}/{}", call.roundsDone, call.rounds) : "";
}

std::string stateOf(const Span& span) {
  const Call& call = *span.call;
  if (call.done()) return "done " + timeText(span.lengthNs());
  if (call.state == State::kQueued) return "queued";
  if (!call.waitingFor) return fmt::format("{}{}", nameOf(call.state), progressOf(call));
  if (call.state == State::kConnecting) return fmt::format("connects to {}", *call.waitingFor);
  const char* what = call.state == State::kFailed ? "failed waiting for" : "waits for";
  return fmt::format("{} {}{}", what, *call.waitingFor, progressOf(call));
}

// The kind that most ranks have under one number.
Collective usualKind(const std::vector<View::Entry>& entries) {
  std::map<Collective, int> counts;
  for (const auto& entry : entries) ++counts[entry.call->kind];
  return std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
}

struct Column {
  uint64_t number;
  Collective kind;
};

std::vector<Column> columnsOf(const View& view, int most) {
  std::vector<Column> columns;
  for (auto at = view.collectives().rbegin(); at != view.collectives().rend() && most-- > 0; ++at)
    columns.push_back({at->first, usualKind(at->second)});
  std::reverse(columns.begin(), columns.end());
  return columns;
}

// The message that is under way, else the last one.
std::string messageOf(const std::vector<Span>& spans) {
  const Span* told = nullptr;
  for (const Span& span : spans)
    if (span.call->line != Line::kCollective && (!told || told->call->done())) told = &span;
  return told ? fmt::format("{}: {}", title(*told->call), stateOf(*told)) : "";
}

Row rowOf(const View& view, int rank, const std::vector<Column>& columns) {
  Row row = {fmt::format("{}", rank), view.job().people[static_cast<size_t>(rank)].host};
  const Record* record = view.record(rank);
  const std::vector<Span> spans = record ? spansOf(*record) : std::vector<Span>();
  for (const Column& column : columns) {
    std::string& cell = row.emplace_back(record ? "-" : "no record");
    for (const Span& span : spans) {
      const Call& call = *span.call;
      if (call.line != Line::kCollective || call.number != column.number) continue;
      const bool usual = call.kind == column.kind;
      cell = usual ? stateOf(span) : fmt::format("{}! {}", tutti::nameOf(call.kind), stateOf(span));
    }
  }
  row.push_back(messageOf(spans));
  return row;
}

std::vector<int> shownRanks(const Job& job, const std::vector<int>& first, int rows) {
  std::set<int> shown(first.begin(), first.begin() + std::min<std::ptrdiff_t>(rows, std::ssize(first)));
  for (int rank = 0; rank < job.size && std::ssize(shown) < rows; ++rank) shown.insert(rank);
  return {shown.begin(), shown.end()};
}

// Text takes as many columns as it has characters; a byte that goes on with one takes none.
size_t widthOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string cut(const std::string& text, size_t width) {
  if (widthOf(text) <= width) return text;
  size_t at = 0;
  for (size_t taken = 0; at < text.size(); ++at)
    if ((text[at] & 0xc0) != 0x80 && ++taken > width - 1) break;
  return text.substr(0, at) + "~";
}

std::vector<size_t> widthsOf(const std::vector<Row>& table) {
  constexpr size_t kWidest = 40;
  std::vector<size_t> widths(table.front().size());
  for (const Row& row : table)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::min(kWidest, std::max(widths[i], widthOf(row[i])));
  return widths;
}

// Removes the oldest collectives until the rest fits; the last one stays.
void fit(std::vector<Row>& table, size_t width) {
  const auto total = [&] {
    size_t sum = 0;
    for (const size_t one : widthsOf(table))
      if (one > 0) sum += one + 2;
    return sum;
  };
  while (table.front().size() > 4 && total() > width + 2)
    for (Row& row : table) row.erase(row.begin() + 2);
}

// Behind the rank and its host, nothing else has a slash.
bool tellsRounds(const std::vector<Row>& table) {
  return std::any_of(table.begin() + 1, table.end(), [](const Row& row) {
    return std::any_of(row.begin() + 2, row.end(),
                       [](const auto& cell) { return cell.find('/') != std::string::npos; });
  });
}

std::string print(const std::vector<Row>& table, size_t width) {
  const std::vector<size_t> widths = widthsOf(table);
  std::string text;
  for (const Row& row : table) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string cell = cut(row[i], widths[i]);
      line += cell + std::string(widths[i] - widthOf(cell) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += cut(line, width) + "\n";
  }
  return text;
}

}  // namespace

std::string timeline(const Job& job, const std::vector<int>& first, const TimelineShape& shape) {
  const View view(job);
  const std::vector<Column> columns = columnsOf(view, shape.calls);
  const std::vector<int> ranks = shownRanks(job, first, shape.rows);
  std::vector<Row> table = {{"rank", "host"}};
  for (const Column& column : columns)
    table.front().push_back(fmt::format("#{} {}", column.number, tutti::nameOf(column.kind)));
  for (const int rank : ranks) table.push_back(rowOf(view, rank, columns));
  const bool messages = std::any_of(table.begin() + 1, table.end(), [](const Row& row) { return !row.back().empty(); });
  table.front().emplace_back(messages ? "messages" : "");
  const auto width = static_cast<size_t>(std::max(shape.width, 20));
  fit(table, width);
  std::string text = print(table, width);
  if (const auto more = job.size - std::ssize(ranks); more > 0)
    text += fmt::format("... and {} rank{} more\n", more, more == 1 ? "" : "s");
  if (tellsRounds(table)) text += "1/4: of the four rounds of the call one is done\n";
  return text;
}

}  // namespace tutti::doctor
