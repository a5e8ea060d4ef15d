#include "faults/mismatch_cases.h"

#include <fmt/format.h>

namespace tutti::faults {
namespace {

constexpr size_t kCount = 1000;

Act collective(Kind kind, uint64_t salt, int ranks) {
  Act act;
  act.operation.kind = kind;
  act.operation.count = kCount;
  act.operation.salt = salt;
  act.operation.root = static_cast<int>(salt % static_cast<uint64_t>(ranks));
  return act;
}

Act message(Act::What what) {
  Act act;
  act.what = what;
  act.operation.kind = Kind::kMessage;
  act.operation.count = kCount;
  return act;
}

std::string wordsFor(const Act& act) {
  if (act.what == Act::What::kSend) return "send to rank|send/receive #0";
  if (act.what == Act::What::kReceive) return "receive from rank|send/receive #0";
  const bool isBarrier = act.what == Act::What::kCollective && act.operation.kind == Kind::kBarrier;
  return fmt::format("{} #0{}", act.name(), isBarrier ? "" : " (");
}

class List {
 public:
  List(std::string transports, size_t stride) : transports_(std::move(transports)), stride_(stride) {}

  void add(const char* kind, int ranks, int deviator, const Act& deviates, const Act& others,
           std::vector<std::string> words, tuttiResult_t expected = tuttiInvalidUsage,
           tuttiResult_t expectedToo = tuttiInvalidUsage) {
    if (number_++ % stride_ != 0) return;
    const bool onStream = number_ / stride_ % 3 == 2;
    cases_.push_back({kind, transports_, ranks, deviator, deviates, others, onStream, std::move(words), expected,
                      onStream && expected == tuttiInvalidUsage ? expectedToo : expected});
  }
  std::vector<Case> take() { return std::move(cases_); }
  uint64_t salt() const noexcept { return mix(number_); }

 private:
  std::string transports_;
  size_t stride_, number_ = 0;
  std::vector<Case> cases_;
};

// Who deviates: of two ranks the first, of three the first or the last.
template <class Body>
void forEachShape(Body body) {
  body(2, 0);
  body(3, 0);
  body(3, 2);
}

std::vector<Act> everyAct(uint64_t salt, int ranks) {
  std::vector<Act> acts;
  for (int kind = 0; kind < kCollectiveKinds; ++kind) acts.push_back(collective(static_cast<Kind>(kind), salt, ranks));
  acts.push_back(message(Act::What::kSend));
  acts.push_back(message(Act::What::kReceive));
  return acts;
}

// Two different calls. A send and a receive do match.
void addPairs(List& list, int ranks, int deviator) {
  const uint64_t salt = list.salt();
  for (const Act& a : everyAct(salt, ranks))
    for (const Act& b : everyAct(salt, ranks)) {
      const bool messages = a.what != Act::What::kCollective && b.what != Act::What::kCollective;
      const bool same = a.what == Act::What::kCollective && b.what == a.what && a.operation.kind == b.operation.kind;
      if (messages || same) continue;
      // Messages have links of their own, and a call on a stream may yet be followed by the one that is waited for: no
      // rank can know that nothing will come. The deadline ends it.
      if (a.what != Act::What::kCollective || b.what != Act::What::kCollective)
        list.add("message", ranks, deviator, a, b, {wordsFor(a) + "|" + wordsFor(b)}, tuttiInvalidUsage, tuttiTimeout);
      else
        list.add("order", ranks, deviator, a, b, {wordsFor(a), wordsFor(b)});
    }
}

// The same call with one argument that differs.
void addArguments(List& list, int ranks, int deviator) {
  for (int k = 0; k < kCollectiveKinds; ++k) {
    const Act others = collective(static_cast<Kind>(k), list.salt(), ranks);
    const Kind kind = others.operation.kind;
    if (kind == Kind::kBarrier) continue;
    const std::string name = wordsFor(others);
    const auto with = [&](auto change) {
      Act act = others;
      change(act.operation);
      return act;
    };
    const bool isV = kind == Kind::kAllGatherV || kind == Kind::kReduceScatterV || kind == Kind::kAllToAllV ||
                     kind == Kind::kGatherV || kind == Kind::kScatterV;
    for (const size_t count : {kCount - 1, size_t{0}, 100 * kCount})
      list.add("count", ranks, deviator, with([&](Operation& o) { o.count = count; }), others,
               isV ? std::vector<std::string>{name}
                   : std::vector<std::string>{name, fmt::format("{} elements", count), "1000 elements"});
    list.add("type", ranks, deviator, with([](Operation& o) { o.type = tuttiInt32; }), others,
             {name, "int32", "float"});
    if (reduces(kind))
      list.add("operator", ranks, deviator, with([](Operation& o) { o.op = tuttiMax; }), others, {name, "sum", "max"});
    if (hasRoot(kind))
      list.add("root", ranks, deviator, with([&](Operation& o) { o.root = (o.root + 1) % ranks; }), others,
               {name, fmt::format("root {}", others.operation.root),
                fmt::format("root {}", (others.operation.root + 1) % ranks)});
  }
}

// One rank makes no call at all: it leaves, or it is there and does something else.
void addAbsences(List& list, int ranks, int deviator) {
  Act leaves, stays;
  leaves.what = Act::What::kLeave;
  stays.what = Act::What::kStayAway;
  const std::string who = fmt::format("rank {} (", deviator);
  for (const Act& others : everyAct(list.salt(), ranks)) {
    const std::string call = wordsFor(others);
    // Whoever only sends is done without the one that is missing; the call after that names it.
    list.add("leaves", ranks, deviator, leaves, others, {who, "fewer calls|did not say|cut off", call + "|barrier #"},
             tuttiRemoteError);
    list.add("stays away", ranks, deviator, stays, others, {who, call + "|barrier #"}, tuttiTimeout);
  }
}

}  // namespace

const char* Act::name() const noexcept {
  switch (what) {
    case What::kCollective:
      return nameOf(operation.kind);
    case What::kSend:
      return "send";
    case What::kReceive:
      return "receive";
    case What::kLeave:
      return "(leaves)";
    case What::kStayAway:
      return "(stays away)";
  }
  return "?";
}

std::string Case::describe() const {
  const std::string detail =
      deviates.what == Act::What::kCollective && others.what == Act::What::kCollective
          ? fmt::format("{} against {}", deviates.operation.describe(), others.operation.describe())
          : fmt::format("{} against {}", deviates.name(), others.name());
  return fmt::format("{}: {}; {}, {} ranks, rank {} deviates{}", name, detail, transports, ranks, deviator,
                     onStream ? ", on streams" : "");
}

std::vector<Case> mismatchCases(const std::string& transports, size_t stride) {
  List list(transports, stride);
  forEachShape([&](int ranks, int deviator) {
    addPairs(list, ranks, deviator);
    addArguments(list, ranks, deviator);
    addAbsences(list, ranks, deviator);
  });
  return list.take();
}

}  // namespace tutti::faults
