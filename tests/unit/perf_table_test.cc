// The programs' output, byte for byte, and what else they write.
#include "perf/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "perf/json_report.h"
#include "perf/plot.h"

namespace tutti::perf {
namespace {

Row exampleRow() {
  Row row;
  row.bytes = 1048576;
  row.count = 262144;
  row.type = "float";
  row.op = "sum";
  row.outOfPlace = Measurement{123.456, 8.4936, 12.7404, 0, {}, "ring", "shm"};
  row.inPlace = Measurement{98765.4, 0.0106, 0.0139, 3, {}, "ring", "shm"};
  return row;
}

TEST(PerfTable, FitsNumbersIntoTheirColumns) {
  EXPECT_EQ(fitted(0, 7), "   0.00");
  EXPECT_EQ(fitted(9999.994, 7), "9999.99");
  EXPECT_EQ(fitted(9999.996, 7), "10000.0");
  EXPECT_EQ(fitted(99999.96, 7), " 100000");
  EXPECT_EQ(fitted(9999999, 7), "9999999");
  EXPECT_EQ(fitted(12345678, 7), "1.2e+07");
  EXPECT_EQ(fitted(999.994, 6), "999.99");
  EXPECT_EQ(fitted(1234.56, 6), "1234.6");
  EXPECT_EQ(fitted(1234567, 6), " 1e+06");
}

TEST(PerfTable, WritesARow) {
  EXPECT_EQ(rowLine(exampleRow(), Options()),
            "     1048576        262144     float     sum      -1   123.46    8.49   12.74       0"
            "  98765.4    0.01    0.01       3\n");
}

TEST(PerfTable, WritesWhatWasNotCheckedOrNotRun) {
  Row row = exampleRow();
  row.outOfPlace->wrong.reset();
  row.inPlace.reset();
  EXPECT_EQ(rowLine(row, Options()),
            "     1048576        262144     float     sum      -1   123.46    8.49   12.74    N/A"
            "      nan     nan     nan    N/A\n");
}

TEST(PerfTable, WritesTheColumnHeader) {
  EXPECT_EQ(columnHeader(Options()),
            "#\n"
            "#                                                              out-of-place                       in-place"
            "          \n"
            "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   "
            "busbw  #wrong \n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  "
            "(GB/s)         \n");
}

TEST(PerfTable, NamesCpuTimeAndTimestamps) {
  Options options;
  options.cpuTime = options.timestamps = true;
  const std::string header = columnHeader(options);
  EXPECT_NE(header.find("    root  cputime   algbw"), std::string::npos);
  EXPECT_NE(header.find("#wrong           timestamp\n"), std::string::npos);
  Row row = exampleRow();
  row.timestamp = "2026-01-31 12:34:56";
  EXPECT_TRUE(rowLine(row, options).ends_with("       3  2026-01-31 12:34:56\n"));
}

TEST(PerfTable, AddsColumnsOfSingleIterations) {
  Options options;
  options.percentiles = true;
  options.skipped = 1;
  Row row = exampleRow();
  row.outOfPlace->iterations = {900, 10, 20, 30};
  row.inPlace->iterations = {900, 5, 5, 5};
  EXPECT_EQ(
      rowLine(row, options),
      "     1048576        262144     float     sum      -1   123.46    8.49   12.74       0"
      "    10.00    30.00    30.00    40.82  98765.4    0.01    0.01       3     5.00     5.00     5.00     0.00\n");
  EXPECT_NE(columnHeader(options).find("#wrong    i_min    i_max    i_p99    i_cv%     time"), std::string::npos);
}

TEST(PerfTable, TakesNearestRankPercentiles) {
  std::vector<double> times;
  for (int i = 200; i >= 1; --i) times.push_back(i);
  const IterationStats stats = statsOf(times);
  EXPECT_EQ(stats.min, 1);
  EXPECT_EQ(stats.p50, 100);
  EXPECT_EQ(stats.p95, 190);
  EXPECT_EQ(stats.p99, 198);
  EXPECT_EQ(stats.max, 200);
  EXPECT_EQ(statsOf({7}).p99, 7);
}

TEST(PerfTable, WritesThePreambleAndTheClosingLines) {
  Options options;
  options.minBytes = 8;
  options.maxBytes = 1024;
  options.stepFactor = 2;
  const std::string text = preamble("all_reduce_perf", options, 100);
  EXPECT_NE(
      text.find("# Collective test starting: all_reduce_perf\n"
                "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20 agg iters: "
                "1 validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n"),
      std::string::npos);
  options.stepFactor = 1;
  EXPECT_NE(preamble("x", options, 100).find(" step: 1048576(bytes) "), std::string::npos);
  EXPECT_EQ(rankLine({3, 0, 411, -1, "n2", "host memory"}),
            "#  Rank  3 Group  0 Pid    411 on         n2 device -1 [0000:00:00] host memory\n");
  EXPECT_EQ(closing("all_reduce_perf", 0, 123.4, std::nullopt),
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 123.4 \n#\n"
            "# Collective test concluded: all_reduce_perf\n");
  EXPECT_TRUE(closing("x", 2, 1.5, 2.0)
                  .starts_with("# Out of bounds values : 2 FAILED\n# Avg bus bandwidth    : 1.5 FAILED\n"));
  EXPECT_NE(closing("x", 0, 1.8, 2.0).find(": 1.8 OK\n"), std::string::npos);
}

TEST(PerfReport, HasNcclTestsKeysAndAPublicEnvironment) {
  Report report;
  report.rows = {exampleRow()};
  report.rows[0].inPlace.reset();
  report.ranks = {{0, 0, 411, -1, "n2", "host memory"}};
  report.complete = true;
  report.meanBusGBs = 12.5;
  const std::string text =
      toJson(report, Options(), {"HOME=/root", "https_proxy=http://me:word@proxy", "TUTTI_TRANSPORT=shm"});
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["env"], (std::vector<std::string>{"TUTTI_TRANSPORT=shm"}));
  const auto& row = json["results"][0];
  EXPECT_EQ(row["size"], 1048576);
  EXPECT_EQ(row["root"], "    -1");
  EXPECT_EQ(row["out_of_place"]["bus_bw"], 12.7404);
  EXPECT_EQ(row["out_of_place"]["nwrong"], 0.0);
  EXPECT_TRUE(row["in_place"].is_null());
  EXPECT_EQ(json["out_of_bounds"]["okay"], "true");
  EXPECT_EQ(json["average_bus_bandwidth"]["okay"], "unchecked");
  EXPECT_EQ(json["devices"][0]["hostname"], "n2");
  EXPECT_TRUE(json["errors"].empty());
}

size_t occurrences(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Every tag is closed, in order, and every attribute quoted.
bool wellFormed(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    if (occurrences(tag, "\"") % 2 != 0 || tag.find('<') != std::string::npos) return false;
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.starts_with('/')) {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(PerfPlot, DrawsEveryMeasuredPointOnce) {
  std::vector<Row> rows;
  for (const size_t bytes : {0, 8, 64, 1024}) {
    rows.push_back(exampleRow());
    rows.back().bytes = bytes;
  }
  const std::string svg = plotOf("a<b&c", 4, rows);
  EXPECT_TRUE(wellFormed(svg));
  EXPECT_EQ(occurrences(svg, "<circle"), 3u * 2 * 2);  // sizes but zero, placements, panels
  EXPECT_EQ(occurrences(svg, "<polyline"), 4u);
  EXPECT_NE(svg.find("a&lt;b&amp;c, 4 ranks"), std::string::npos);
  EXPECT_NE(svg.find(">1 KiB<"), std::string::npos);
  EXPECT_NE(svg.find("float sum, in-place"), std::string::npos);
}

TEST(PerfPlot, DrawsAFrameWithoutPoints) { EXPECT_TRUE(wellFormed(plotOf("x", 1, {}))); }

}  // namespace
}  // namespace tutti::perf
