// The text is what nlohmann's library makes of the same values.
#include "diagnose/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using tutti::JsonWriter;
using Json = nlohmann::ordered_json;

void writeCalls(JsonWriter& json) {
  json.object([&] {
    json.field("order", uint64_t{1} << 63);
    json.key("none").null();
  });
  json.object([] {});
  json.array([] {});
  json.value(-7);
  json.value(0.1);
  json.value(1e300);
  json.value(2.0);
  json.value(true);
}

TEST(JsonWriter, WritesWhatATreeWouldBeWrittenAs) {
  JsonWriter json;
  json.object([&] {
    json.field("text", "a \"b\" \\ \n \x01");
    json.key("calls").array([&] { writeCalls(json); });
    json.key("empty").array([] {});
    json.key("in").object([&] { json.field("a", std::string("ä")); });
  });
  const Json calls = {
      {{"order", uint64_t{1} << 63}, {"none", nullptr}}, Json::object(), Json::array(), -7, 0.1, 1e300, 2.0, true};
  const Json same = {{"text", "a \"b\" \\ \n \x01"}, {"calls", calls}, {"empty", Json::array()}, {"in", {{"a", "ä"}}}};
  EXPECT_EQ(json.take(), same.dump(1) + "\n");
}

TEST(JsonWriter, BeginsWithAnyValue) {
  JsonWriter list, text;
  list.array([&] {
    list.value(1);
    list.value("two");
  });
  text.value("alone");
  EXPECT_EQ(list.take(), "[\n 1,\n \"two\"\n]\n");
  EXPECT_EQ(text.take(), "\"alone\"\n");
}

TEST(JsonWriter, HasNothingForWhatIsNoNumber) {
  JsonWriter json;
  json.array([&] {
    json.value(std::numeric_limits<double>::infinity());
    json.value(std::numeric_limits<double>::quiet_NaN());
  });
  EXPECT_EQ(json.take(), "[\n null,\n null\n]\n");
}

TEST(JsonText, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(tutti::jsonText("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(tutti::jsonText("ä\xff", true), "\"\\u00e4\\ufffd\"");
}

}  // namespace
