#include "doctor/records.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "doctor/timeline.h"
#include "doctor/trace.h"
#include "doctor/words.h"
#include "unit/doctor_records.h"

namespace tutti::doctor::test {
namespace {

using Json = nlohmann::json;

Json goodRecord() {
  return Json::parse(R"({
    "tutti": {"version": "0.1.0", "format": 1},
    "communicator": {"id": "0123456789abcdef", "name": "world", "rank": 1, "size": 2, "host": "n1", "pid": 101},
    "ranks": [{"rank": 0, "host": "n0", "pid": 100}, {"rank": 1, "host": "n1", "pid": 101}],
    "why": "SIGUSR2", "error": {"code": "timeout", "text": "late"}, "writtenNs": 5000,
    "calls": [
      {"order": 4, "line": "collective", "number": 3, "kind": "reduce", "type": "half", "count": 5, "bytes": 10,
       "op": "max", "root": 1, "state": "done", "algorithm": "ring", "roundsDone": 2, "rounds": 2,
       "queuedNs": 1000, "endedNs": 2000},
      {"order": 5, "line": "send", "number": 0, "kind": "send/receive", "type": "int8", "count": 1, "bytes": 1,
       "peer": 0, "state": "running", "waitingFor": 0, "roundsDone": 0, "rounds": 1, "queuedNs": 3000}]})");
}

TEST(DoctorRecords, EveryFieldIsRead) {
  const Record record = parseRecord("one.json", goodRecord().dump());
  EXPECT_EQ(record.communicator, "0123456789abcdef");
  EXPECT_EQ(record.rank, 1);
  EXPECT_EQ(record.people.at(0).host, "n0");
  EXPECT_EQ(record.failure->code, "timeout");
  ASSERT_EQ(record.calls.size(), 2U);
  EXPECT_EQ(describe(record.calls[0]), "reduce #3 (half, 10 bytes, max, root 1)");
  EXPECT_EQ(describe(record.calls[1]), "send #0 to rank 0 (int8, 1 byte)");
  EXPECT_EQ(record.calls[0].endedNs, 2000);
  EXPECT_FALSE(record.calls[1].endedNs);
  EXPECT_EQ(record.calls[1].waitingFor, 0);
}

void expectRefused(const std::string& text, const std::string& why) {
  try {
    parseRecord("some/file.json", text);
    FAIL() << "accepted: " << text.substr(0, 200);
  } catch (const BadRecord& error) {
    const std::string said = error.what();
    EXPECT_EQ(said.find("some/file.json: "), 0U) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  }
}

TEST(DoctorRecords, WhatIsNoRecordIsRefused) {
  expectRefused("", "not a whole JSON text");
  expectRefused("all is well\n", "not a whole JSON text");
  const std::string whole = goodRecord().dump();
  expectRefused(whole.substr(0, whole.size() / 2), "not a whole JSON text");
  expectRefused(whole + "x", "not a whole JSON text");
  expectRefused(std::string(100'000, '['), "not a whole JSON text");
  expectRefused("\"\xff\xfe\"", "not a whole JSON text");
  expectRefused("[]", "is no object");
  expectRefused("{}", "not a record of tutti's");
}

struct Damage {
  const char* place;  // a JSON pointer
  const char* value;  // null: the entry is removed
  const char* why;
};

TEST(DoctorRecords, EveryWrongFieldIsNamed) {
  for (const auto& [place, value, why] :
       std::initializer_list<Damage>{{"/tutti/format", "2", "a record of format 2"},
                                     {"/tutti/format", "\"1\"", "\"format\""},
                                     {"/communicator/size", "0", "\"size\""},
                                     {"/communicator/size", "3", "2 entries for 3 ranks"},
                                     {"/communicator/size", "1e99", "\"size\""},
                                     {"/communicator/rank", "2", "\"rank\""},
                                     {"/communicator/rank", "-1", "\"rank\""},
                                     {"/communicator/id", "7", "\"id\""},
                                     {"/ranks/1/rank", "0", "another rank"},
                                     {"/ranks/1", "5", "no object"},
                                     {"/ranks/0/pid", "-4", "\"pid\""},
                                     {"/error", "true", "no object"},
                                     {"/error/text", nullptr, "\"text\""},
                                     {"/writtenNs", "18446744073709551615", "\"writtenNs\""},
                                     {"/writtenNs", "null", "\"writtenNs\""},
                                     {"/calls", "{}", "no list"},
                                     {"/calls/0/order", "9", "no order"},
                                     {"/calls/0/count", "-1", "\"count\" of call 0"},
                                     {"/calls/0/count", "1e400", "JSON"},
                                     {"/calls/0/count", "0.5", "\"count\" of call 0"},
                                     {"/calls/0/kind", "\"all-seduce\"", "all-seduce"},
                                     {"/calls/0/type", "\"float16\"", "float16"},
                                     {"/calls/0/op", "\"xor\"", "xor"},
                                     {"/calls/0/state", "\"asleep\"", "asleep"},
                                     {"/calls/0/root", "2", "\"root\" of call 0"},
                                     {"/calls/0/peer", "1", "a collective has a peer"},
                                     {"/calls/1/peer", nullptr, "a message has none"},
                                     {"/calls/1/waitingFor", "99999999999", "\"waitingFor\" of call 1"},
                                     {"/calls/1/queuedNs", nullptr, "call 1 has no \"queuedNs\""}}) {
    const Json::json_pointer pointer(place);
    Json record = goodRecord();
    std::string text;
    if (value) {
      record[pointer] = "@@";  // a number too large for a double is no JSON value: it goes in as text
      text = record.dump();
      text.replace(text.find("\"@@\""), 4, value);
    } else {
      record[pointer.parent_pointer()].erase(pointer.back());
      text = record.dump();
    }
    SCOPED_TRACE(place);
    expectRefused(text, why);
  }
}

TEST(DoctorRecords, TextsCannotSteerATerminal) {
  Json record = goodRecord();
  record["ranks"][0]["host"] = "n0\x1b[31m\n";
  EXPECT_EQ(parseRecord("f", record.dump()).people[0].host, "n0 [31m ");
}

TEST(DoctorRecords, TwoOfOneRankAreRefused) {
  EXPECT_THROW(groupRecords({record(0, 2, {}), record(0, 2, {})}), BadRecord);
  Record other = record(1, 2, {});
  other.people[0].pid = 1;
  EXPECT_THROW(groupRecords({record(0, 2, {}), other}), BadRecord);
}

TEST(DoctorRecords, CommunicatorsAreToldApart) {
  Record other = record(0, 1, {});
  other.communicator = "fedcba9876543210";
  const auto jobs = groupRecords({record(1, 2, {}), other, record(0, 2, {})});
  ASSERT_EQ(jobs.size(), 2U);
  ASSERT_EQ(jobs[0].records.size(), 2U);
  EXPECT_EQ(jobs[0].records[0].rank, 0);
  EXPECT_EQ(jobs[1].communicator, "fedcba9876543210");
}

TEST(DoctorRecords, FilesThatCannotBeReadAreNamed) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / fmt::format("doctor-{}", ::getpid());
  std::filesystem::create_directories(folder);
  EXPECT_THROW(findRecords({folder}), BadRecord);
  std::ofstream(folder / "tutti-b.json") << "{}";
  std::ofstream(folder / "tutti-a.json") << "{}";
  std::ofstream(folder / "other.json") << "{}";
  EXPECT_EQ(findRecords({folder, "x"}),
            (std::vector<std::string>{folder / "tutti-a.json", folder / "tutti-b.json", "x"}));
  EXPECT_THROW(readRecord(folder / "nothing.json"), BadRecord);
  EXPECT_THROW(readRecord(folder), BadRecord);
  EXPECT_THROW(readRecord("/dev/zero"), BadRecord);
  std::filesystem::remove_all(folder);
}

TEST(DoctorTimeline, ARowARankAndNoLineTooLong) {
  std::vector<Call> calls;
  for (uint64_t n = 0; n < 20; ++n) calls.push_back(collective(n));
  Call last = unfinished(collective(20, Collective::kBroadcast), 0);
  calls.push_back(last);
  const Job job = jobOf({record(0, 3, {calls.begin(), calls.end() - 1}), record(1, 3, calls)});
  const std::string text = timeline(job, {}, {.width = 60, .calls = 8, .rows = 64});
  EXPECT_NE(text.find("#20 broadcast"), std::string::npos) << text;
  EXPECT_NE(text.find("waits for 0"), std::string::npos) << text;
  EXPECT_NE(text.find("no record"), std::string::npos) << text;
  size_t lines = 0;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1, ++lines)
    EXPECT_LE(end - at, 60U) << text;
  EXPECT_EQ(lines, 4U) << text;
}

TEST(DoctorTimeline, RoundsAreToldInWords) {
  Call call = unfinished(collective(0), 0);
  call.rounds = 1;
  const auto shown = [&] {
    return timeline(jobOf({record(0, 2, {}), record(1, 2, {call})}), {}, {.width = 100, .calls = 8, .rows = 64});
  };
  EXPECT_EQ(shown().find('/'), std::string::npos) << shown();
  call.rounds = 4;
  call.roundsDone = 1;
  EXPECT_NE(shown().find("waits for 0, 1/4\n"), std::string::npos) << shown();
  EXPECT_NE(shown().find("\n1/4: of the four rounds of the call one is done\n"), std::string::npos) << shown();
  call.state = State::kFailed;
  EXPECT_NE(shown().find("failed waiting for 0, 1/4\n"), std::string::npos) << shown();
}

TEST(DoctorTimeline, TheBlamedAreShownFirst) {
  const Job job = jobOf({record(0, 1000, {})});
  const std::string text = timeline(job, {777}, {.width = 100, .calls = 8, .rows = 3});
  EXPECT_NE(text.find("\n777 "), std::string::npos) << text;
  EXPECT_NE(text.find("997 ranks more"), std::string::npos) << text;
}

TEST(DoctorTrace, EveryCallIsAnEventThatNests) {
  const Call first = message(Line::kSend, 1, 0, 1);
  Call second = message(Line::kSend, 0, 0, 2);
  second.queuedNs += 500'000;  // half of the first
  second.endedNs = *first.endedNs + 500'000;
  const Json trace = Json::parse(toTrace({jobOf({record(1, 2, {collective(0), first, second}), record(0, 2, {})})}));
  std::map<std::pair<int, int>, double> until;
  int events = 0;
  for (const Json& event : trace.at("traceEvents")) {
    ASSERT_TRUE(event.contains("pid") && event.contains("tid") && event.contains("name"));
    if (event.at("ph") != "X") continue;
    ++events;
    double& before = until[{event.at("pid"), event.at("tid")}];
    EXPECT_LE(before, event.at("ts").get<double>());
    before = event.at("ts").get<double>() + event.at("dur").get<double>();
    EXPECT_EQ(event.at("dur"), 1000.0);
    EXPECT_EQ(event.at("args").at("state"), "done");
  }
  EXPECT_EQ(events, 3);
}

TEST(DoctorTrace, ACallBeginsWhenTheOneBeforeIsOver) {
  Call queued = collective(1);
  queued.endedNs = *queued.endedNs + 2'000'000;
  const Json trace = Json::parse(toTrace({jobOf({record(0, 1, {collective(0), queued})})}));
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("name") == "all-reduce #1") {
      EXPECT_EQ(event.at("ts"), 1000.0);
      EXPECT_EQ(event.at("dur"), 2000.0);
    }
}

}  // namespace
}  // namespace tutti::doctor::test
