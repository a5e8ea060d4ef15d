#include "comm/explanation_json.h"

#include "base/command_name.h"
#include "diagnose/json_writer.h"

namespace tutti::comm {
namespace {

void write(JsonWriter& json, const Explanation::Candidate& candidate) {
  json.object([&] {
    json.field("algorithm", candidate.algorithm);
    const bool onGpu = !candidate.protocol.empty();
    if (onGpu) json.field("protocol", candidate.protocol);
    if (candidate.channels > 0) json.field("channels", candidate.channels);
    json.field("predicted_us", candidate.predictedUs);
    if (!onGpu) json.field("links_us", candidate.linksUs);
  });
}

template <class List>
void writeList(JsonWriter& json, std::string_view name, const List& list) {
  json.key(name).array([&] {
    for (const auto& each : list) json.value(each);
  });
}

void write(JsonWriter& json, const Explanation::Way& way) {
  json.object([&] {
    json.field("transport", way.transport);
    writeList(json, "ranks", way.ranks);
    json.field("same_host", way.sameHost);
    if (!way.pricedBy.empty()) {
      json.field("latency_us", way.latencyUs);
      json.field("gb_per_s", way.gigabytes);
      json.field("priced_by", way.pricedBy);
    }
    writeList(json, "not_faster", way.notFaster);
  });
}

template <class List>
void writeObjects(JsonWriter& json, std::string_view name, const List& list) {
  json.key(name).array([&] {
    for (const auto& each : list) write(json, each);
  });
}

}  // namespace

std::string toJson(const Explanation& explanation, const Call& call, int ranks) {
  JsonWriter json;
  json.object([&] {
    json.field("operation", commandName(call.collective));
    json.field("count", call.count);
    json.field("bytes", call.planBytes(ranks));
    json.field("ranks", ranks);
    json.key("choice");
    write(json, explanation.choice);
    writeObjects(json, "others", explanation.others);
    writeList(json, "left_out", explanation.excluded);
    writeObjects(json, "links", explanation.ways);
    if (!explanation.order.empty()) json.field("ring_order", explanation.order);
    if (!explanation.prices.empty()) json.field("prices", explanation.prices);
  });
  return json.take();
}

}  // namespace tutti::comm
