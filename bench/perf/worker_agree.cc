// What the ranks say to each other beside what is measured: when to begin, whose time counts, what each one is.
#include "perf/failure.h"
#include "perf/worker.h"

namespace tutti::perf {

void Worker::forEach(const char* call, const std::function<tuttiResult_t(Member&)>& run) {
  const bool grouped = members_.size() > 1;
  const Member& front = members_.front();
  if (grouped) require(tuttiGroupStart(), "tuttiGroupStart", front.rank, nullptr);
  for (Member& member : members_) require(run(member), call, member.rank, member.control);
  if (grouped) require(tuttiGroupEnd(), call, front.rank, nullptr);
}

// Where barriers are part of what is measured, they are the same ones whatever algorithm is forced, so that times can
// be compared.
void Worker::barrier() {
  tuttiCallConfig_t config = TUTTI_CALL_CONFIG_INITIALIZER;
  if (options_.blocking == Blocking::kEachWithBarrier && !options_.algorithm.empty()) config.algorithm = "tree";
  forEach("tuttiBarrier", [&](Member& member) { return tuttiBarrierConfig(member.control, nullptr, &config); });
}

double Worker::agree(std::vector<double> values, tuttiRedOp_t op) {
  size_t next = 0;
  forEach("tuttiAllReduce", [&](Member& member) {
    double* value = &values[next++];
    return tuttiAllReduce(value, value, 1, tuttiFloat64, op, member.control, nullptr);
  });
  return values.front();
}

double Worker::averaged(double seconds) {
  std::vector<double> values(members_.size(), seconds);
  switch (options_.average) {
    case Average::kMean:
      return agree(values, tuttiAvg);
    case Average::kMin:
      return agree(values, tuttiMin);
    case Average::kMax:
      return agree(values, tuttiMax);
    default:
      break;
  }
  for (size_t i = 0; i < members_.size(); ++i) values[i] = members_[i].rank == 0 ? seconds : 0;
  return agree(values, tuttiSum);
}

std::vector<double> Worker::slowest(std::vector<double> seconds) {
  std::vector<std::vector<double>> results(members_.size(), seconds);
  size_t next = 0;
  forEach("tuttiAllReduce", [&](Member& member) {
    return tuttiAllReduce(seconds.data(), results[next++].data(), seconds.size(), tuttiFloat64, tuttiMax,
                          member.control, nullptr);
  });
  return results.front();
}

std::vector<std::string> Worker::gather(size_t recordBytes, const std::function<std::string(const Member&)>& ofMember) {
  std::vector<std::string> sent,
      received(members_.size(), std::string(recordBytes * static_cast<size_t>(ranks_), '\0'));
  for (const Member& member : members_) {
    sent.push_back(ofMember(member));
    sent.back().resize(recordBytes);
  }
  size_t next = 0;
  forEach("tuttiAllGather", [&](Member& member) {
    const size_t i = next++;
    return tuttiAllGather(sent[i].data(), received[i].data(), recordBytes, tuttiInt8, member.control, nullptr);
  });
  std::vector<std::string> records;
  for (size_t r = 0; r < static_cast<size_t>(ranks_); ++r) {
    records.push_back(received.front().substr(r * recordBytes, recordBytes));
  }
  return records;
}

}  // namespace tutti::perf
