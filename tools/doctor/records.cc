#include "doctor/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tutti::doctor {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFormat = 1;
constexpr size_t kMostBytes = size_t{256} << 20;
constexpr int64_t kMostRanks = 1 << 24;
constexpr size_t kMostCalls = 1 << 20;
constexpr size_t kLongestText = 4096;

constexpr std::string_view kLines[] = {"collective", "send", "receive"};
constexpr std::string_view kStates[] = {"queued", "connecting", "running", "done", "failed"};

// What stands in a text may reach a terminal: no control characters.
std::string printable(std::string text) {
  if (text.size() > kLongestText) text.resize(kLongestText);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return text;
}

// One JSON object, with the name of its place in the file for errors.
class Object {
 public:
  Object(const std::string& file, std::string place, const Json& json)
      : file_(file), place_(std::move(place)), json_(json) {
    if (!json.is_object()) fail(fmt::format("{} is no object", place_));
  }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(fmt::format("{} has no \"{}\"", place_, key));
    return *found;
  }
  bool has(const char* key) const { return json_.contains(key); }
  Object object(const char* key) const { return {file_, fmt::format("\"{}\"", key), at(key)}; }
  const Json& list(const char* key) const {
    const Json& found = at(key);
    if (!found.is_array()) fail(fmt::format("\"{}\" of {} is no list", key, place_));
    return found;
  }
  std::string text(const char* key) const {
    const Json& found = at(key);
    if (!found.is_string()) fail(fmt::format("\"{}\" of {} is no text", key, place_));
    return printable(found.get<std::string>());
  }
  uint64_t count(const char* key) const {
    const Json& found = at(key);
    if (!found.is_number_unsigned()) fail(fmt::format("\"{}\" of {} is no whole number from 0 on", key, place_));
    return found.get<uint64_t>();
  }
  int64_t number(const char* key, int64_t low, int64_t high) const {
    const Json& found = at(key);
    const bool fits = found.is_number_unsigned()
                          ? found.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()}
                          : found.is_number_integer();
    const int64_t value = fits ? found.get<int64_t>() : 0;
    if (!fits || value < low || value > high)
      fail(fmt::format("\"{}\" of {} is no whole number from {} to {}", key, place_, low, high));
    return value;
  }
  int64_t time(const char* key) const { return number(key, 0, std::numeric_limits<int64_t>::max()); }
  // The number of the name in `names`.
  template <class T, class NameAt>
  T choice(const char* key, int names, NameAt nameAt) const {
    const std::string name = text(key);
    for (int i = 0; i < names; ++i)
      if (nameAt(i) == name) return static_cast<T>(i);
    fail(fmt::format("\"{}\" of {} is \"{}\", which this tutti-doctor does not know", key, place_, name));
  }
  [[noreturn]] void fail(const std::string& what) const { throw BadRecord(file_, what); }

 private:
  const std::string& file_;
  std::string place_;
  const Json& json_;
};

template <class T>
constexpr auto kByName = [](int i) { return nameOf(static_cast<T>(i)); };

std::optional<int> rankIn(const Object& call, const char* key, int size) {
  if (!call.has(key)) return std::nullopt;
  return static_cast<int>(call.number(key, 0, size - 1));
}

Call readCall(const Object& in, int size) {
  Call call;
  call.order = in.count("order");
  call.line = in.choice<Line>("line", std::size(kLines), kByName<Line>);
  call.number = in.count("number");
  call.kind = in.choice<Collective>("kind", kCollectives, kByName<Collective>);
  call.type = in.choice<DataType>("type", kDataTypes, kByName<DataType>);
  call.count = in.count("count");
  call.bytes = in.count("bytes");
  if (in.has("op")) call.op = in.choice<ReduceOp>("op", kReduceOps, kByName<ReduceOp>);
  call.root = rankIn(in, "root", size);
  call.peer = rankIn(in, "peer", size);
  if (in.has("tag")) call.tag = in.count("tag");
  call.waitingFor = rankIn(in, "waitingFor", size);
  call.state = in.choice<State>("state", std::size(kStates), kByName<State>);
  if (in.has("algorithm")) call.algorithm = in.text("algorithm");
  call.roundsDone = in.count("roundsDone");
  call.rounds = in.count("rounds");
  call.queuedNs = in.time("queuedNs");
  if (in.has("endedNs")) call.endedNs = in.time("endedNs");
  if ((call.line == Line::kCollective) == call.peer.has_value())
    in.fail("a collective has a peer, or a message has none");
  return call;
}

Json parseJson(const std::string& file, std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    std::string why = e.what();  // "[json.exception.parse_error.101] parse error at line ..."
    if (const size_t end = why.find("] "); end != std::string::npos) why = why.substr(end + 2);
    throw BadRecord(file, "not a whole JSON text: " + printable(why).substr(0, 160));
  }
}

void readPeople(const std::string& file, const Object& root, Record& record) {
  const Json& list = root.list("ranks");
  if (list.size() != static_cast<size_t>(record.size))
    root.fail(fmt::format("\"ranks\" has {} entries for {} ranks", list.size(), record.size));
  for (size_t i = 0; i < list.size(); ++i) {
    const Object one(file, fmt::format("entry {} of \"ranks\"", i), list[i]);
    if (one.count("rank") != i) one.fail(fmt::format("entry {} of \"ranks\" is of another rank", i));
    record.people.push_back({one.text("host"), one.number("pid", 0, std::numeric_limits<int64_t>::max())});
  }
}

void readCalls(const std::string& file, const Object& root, Record& record) {
  const Json& list = root.list("calls");
  if (list.size() > kMostCalls) root.fail(fmt::format("{} calls are too many", list.size()));
  for (size_t i = 0; i < list.size(); ++i) {
    record.calls.push_back(readCall(Object(file, fmt::format("call {}", i), list[i]), record.size));
    if (i > 0 && record.calls[i].order <= record.calls[i - 1].order) root.fail("its calls are in no order");
  }
}

}  // namespace

std::string_view nameOf(Line line) noexcept { return kLines[static_cast<size_t>(line)]; }
std::string_view nameOf(State state) noexcept { return kStates[static_cast<size_t>(state)]; }

Record parseRecord(const std::string& file, std::string_view text) {
  const Json json = parseJson(file, text);
  const Object root(file, "it", json);
  if (!root.has("tutti")) root.fail("not a record of tutti's: it has no \"tutti\"");
  const Object tutti = root.object("tutti");
  if (const int64_t format = tutti.number("format", 0, kMostRanks); format != kFormat)
    root.fail(fmt::format("a record of format {}; this tutti-doctor reads format {}: use that of tutti {}", format,
                          kFormat, tutti.text("version")));
  Record record;
  record.file = file;
  record.version = tutti.text("version");
  const Object who = root.object("communicator");
  record.communicator = who.text("id");
  record.name = who.text("name");
  record.size = static_cast<int>(who.number("size", 1, kMostRanks));
  record.rank = static_cast<int>(who.number("rank", 0, record.size - 1));
  readPeople(file, root, record);
  record.why = root.text("why");
  if (!root.at("error").is_null()) {
    const Object error = root.object("error");
    record.failure = Failure{error.text("code"), error.text("text")};
  }
  record.writtenNs = root.time("writtenNs");
  readCalls(file, root, record);
  return record;
}

Record readRecord(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in || std::filesystem::is_directory(file))
    throw BadRecord(file, "cannot be read: " + std::string(std::strerror(errno)));
  const auto bytes = in.tellg();
  if (bytes < 0 || static_cast<uint64_t>(bytes) > kMostBytes)
    throw BadRecord(file, fmt::format("no record: it has more than {} bytes, or no end", kMostBytes));
  std::string text(static_cast<size_t>(bytes), '\0');
  in.seekg(0);
  in.read(text.data(), bytes);
  if (!in) throw BadRecord(file, "cannot be read to its end");
  return parseRecord(file, text);
}

namespace {

// Sorted. A folder that may not be read, or vanishes meanwhile, is not an empty one.
std::vector<std::string> recordsIn(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with("tutti-") && name.ends_with(".json")) files.push_back(at->path());
  }
  if (error) throw BadRecord(folder, "this folder cannot be read: " + error.message());
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<std::string> findRecords(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    const std::vector<std::string> found = recordsIn(path);
    if (found.empty()) throw BadRecord(path, "this folder has no records (tutti-*.json)");
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

namespace {

void add(Job& job, Record record) {
  const bool same = record.size == job.size &&
                    std::equal(record.people.begin(), record.people.end(), job.people.begin(), job.people.end(),
                               [](const Person& a, const Person& b) { return a.host == b.host && a.pid == b.pid; });
  if (!same)
    throw BadRecord(record.file,
                    fmt::format("names other ranks than {}, which is of the same communicator", job.records[0].file));
  const auto at = std::lower_bound(job.records.begin(), job.records.end(), record.rank,
                                   [](const Record& one, int rank) { return one.rank < rank; });
  if (at != job.records.end() && at->rank == record.rank)
    throw BadRecord(record.file,
                    fmt::format("is of rank {}, as is {}: keep the one that you mean", record.rank, at->file));
  job.records.insert(at, std::move(record));
}

}  // namespace

std::vector<Job> groupRecords(std::vector<Record> records) {
  std::map<std::string, size_t> places;
  std::vector<Job> jobs;
  for (Record& record : records) {
    const auto [at, isNew] = places.emplace(record.communicator, jobs.size());
    if (isNew) jobs.push_back({record.communicator, record.name, record.size, record.people, {}});
    add(jobs[at->second], std::move(record));
  }
  return jobs;
}

}  // namespace tutti::doctor
