#include "launch/tf_config.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/plain_text.h"
#include "launch/besides.h"

namespace tutti::control {
namespace {

using Json = nlohmann::json;

struct Worker {
  std::string host;
  int port = 0;
};

// It may be long: errors show its beginning.
[[noreturn]] void refuse(const std::string& text, const std::string& why, ErrorCode code) {
  constexpr size_t kShown = 200;
  throw Error(code, fmt::format("TF_CONFIG={}{}: {}", text.substr(0, kShown), text.size() > kShown ? "..." : "", why));
}

Json parse(const std::string& text) {
  if (jsonDepth(text) > kMostJsonDepth)
    refuse(text, "it is nested deeper than any that TensorFlow knows", ErrorCode::kInvalidArgument);
  Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) refuse(text, "expected a JSON object", ErrorCode::kInvalidArgument);
  return config;
}

Worker workerOf(const std::string& text, const Json& address) {
  if (!address.is_string()) refuse(text, "expected host:port in the cluster", ErrorCode::kInvalidArgument);
  const auto& full = address.get_ref<const std::string&>();
  const size_t colon = full.rfind(':');
  const auto wrong = [&] {
    refuse(text, fmt::format("expected host:port instead of \"{}\"", full), ErrorCode::kInvalidArgument);
  };
  if (colon == std::string::npos) wrong();
  Worker worker{full.substr(0, colon), 0};
  if (worker.host.size() > 2 && worker.host.front() == '[') worker.host = worker.host.substr(1, worker.host.size() - 2);
  const char* const end = full.data() + full.size();
  const auto [stop, failure] = std::from_chars(full.data() + colon + 1, end, worker.port);
  if (worker.host.empty() || failure != std::errc() || stop != end || worker.port < 1 || worker.port > 65535) wrong();
  return worker;
}

std::vector<Worker> workersOf(const std::string& text, const Json& cluster, const char* type) {
  std::vector<Worker> listed;
  const Json list = cluster.value(type, Json::array());
  if (!list.is_array())
    refuse(text, fmt::format("\"{}\" of the cluster is no list", type), ErrorCode::kInvalidArgument);
  for (const Json& address : list) listed.push_back(workerOf(text, address));
  return listed;
}

// All ranks, and how many of them are chiefs ("master" in old versions).
struct Cluster {
  std::vector<Worker> ranks;
  size_t chiefs = 0;
};

Cluster clusterOf(const std::string& text, const Json& config) {
  const Json cluster = config.value("cluster", Json::object());
  if (!cluster.is_object()) refuse(text, "\"cluster\" is no object", ErrorCode::kInvalidArgument);
  Cluster result;
  result.ranks = workersOf(text, cluster, cluster.contains("chief") ? "chief" : "master");
  result.chiefs = result.ranks.size();
  const auto workers = workersOf(text, cluster, "worker");
  result.ranks.insert(result.ranks.end(), workers.begin(), workers.end());
  return result;
}

size_t rankOf(const std::string& text, const Json& config, const Cluster& cluster) {
  const Json task = config.value("task", Json::object());
  const Json index = task.is_object() ? task.value("index", Json()) : Json();
  const Json type = task.is_object() ? task.value("type", Json()) : Json();
  // Kubeflow writes a number, others a text of digits.
  const std::string digits = index.is_string() ? index.get<std::string>() : index.dump();
  size_t number = 0;
  const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (!type.is_string() || failure != std::errc() || stop != digits.data() + digits.size())
    refuse(text, "expected \"task\": {\"type\": ..., \"index\": ...}", ErrorCode::kInvalidArgument);
  const std::string name = type.get<std::string>();
  const bool chief = name == "chief" || name == "master";
  if (!chief && name != "worker")
    refuse(text, fmt::format("a task of type \"{}\" is no rank: only chief and workers are", name),
           ErrorCode::kInvalidUsage);
  const size_t count = chief ? cluster.chiefs : cluster.ranks.size() - cluster.chiefs;
  if (number >= count)
    refuse(text, fmt::format("task {} {}, but the cluster has {} of them", name, number, count),
           ErrorCode::kInvalidUsage);
  return chief ? number : cluster.chiefs + number;
}

std::string textOf(const settings::Environment& environment) { return environment.find("TF_CONFIG").value_or("{}"); }

}  // namespace

bool tfConfigApplies(const settings::Environment& environment) {
  const std::string text = textOf(environment);
  return !clusterOf(text, parse(text)).ranks.empty();
}

void readTfConfig(const settings::Environment& environment, LaunchInfo& launch) {
  const std::string text = textOf(environment);
  const Json config = parse(text);
  const Cluster cluster = clusterOf(text, config);
  const size_t rank = rankOf(text, config, cluster);
  const auto here = [&](const Worker& worker) { return worker.host == cluster.ranks[rank].host; };
  const auto self = cluster.ranks.begin() + static_cast<std::ptrdiff_t>(rank);
  launch.rank = static_cast<int>(rank);
  launch.size = static_cast<int>(cluster.ranks.size());
  launch.localRank = static_cast<int>(std::count_if(cluster.ranks.begin(), self, here));
  launch.localSize = static_cast<int>(std::count_if(cluster.ranks.begin(), cluster.ranks.end(), here));
  for (const Worker& worker : cluster.ranks) launch.jobKey += fmt::format("{}:{} ", worker.host, worker.port);
  launch.source = "TF_CONFIG";
}

bool placeOfTfConfig(const settings::Environment& environment, LaunchInfo& launch) {
  const std::string text = textOf(environment);
  const Worker root = clusterOf(text, parse(text)).ranks.front();
  launch.rootHost = root.host;
  launch.rootPort = besides(root.port);
  return true;
}

}  // namespace tutti::control
