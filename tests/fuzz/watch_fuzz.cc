// Answers to where-are-you as the watch of a call that stands still judges them, and those of a rank that waits in
// another communicator of this process (diagnose/neighbours.h): whatever they say, the call goes on or ends with an
// error that names a rank, and what is said of another communicator leads to one of this process or nowhere.
#include "diagnose/stall_detector.h"

#include "diagnose/neighbours.h"
#include "diagnose/respond.h"
#include "fuzz/hearsay.h"
#include "topology/peer_info.h"

namespace tutti::fuzz {
namespace {

using comm::CallLine;
using comm::CallState;

constexpr int kRanks = 3, kMostSteps = 64;
constexpr uint64_t kIds[] = {7, 8};

class Answering : public Hearsay {
 public:
  explicit Answering(uint64_t id) : Hearsay(id, kRanks) {}
  std::span<const std::byte> info(int) const override {
    static const Bytes info = topology::encode(topology::describeSelf());
    return info;
  }
  std::optional<control::Answer> lastAnswer(int rank) const override { return answers_[static_cast<size_t>(rank)]; }
  std::vector<int> wayTo(int rank) const override { return rank == 2 ? std::vector<int>{1} : std::vector<int>{}; }

  void answer(int rank, Bytes body, bool left) {
    auto& last = answers_[static_cast<size_t>(rank)];
    last = {last ? last->count + 1 : 1, left, std::move(body)};
  }

 private:
  std::optional<control::Answer> answers_[kRanks];
};

// A communicator of this process, whose plane is in the hands of the input.
struct Member {
  Member(uint64_t id, std::chrono::milliseconds timeout) {
    comm::Config config;
    config.operationTimeout = timeout;
    auto made = std::make_unique<Answering>(id);
    plane = made.get();
    team = std::make_shared<comm::Team>(std::move(made), recorder, config);
    comm::Neighbours::instance().add(team);
  }
  std::shared_ptr<comm::Recorder> recorder = std::make_shared<comm::Recorder>();
  Answering* plane;
  std::shared_ptr<comm::Team> team;
};

comm::Call callFrom(Input& in) {
  constexpr Collective kSome[] = {Collective::kAllReduce, Collective::kSendRecv, Collective::kAllToAllV,
                                  Collective::kBarrier};
  comm::Call call;
  const auto how = in.take<uint8_t>();
  call.collective = kSome[how % std::size(kSome)];
  call.count = how / 4 % 4;
  call.sends = how / 16 % 2 != 0;
  if (call.collective == Collective::kSendRecv) call.root = 1 + how / 32 % 2;
  if (call.collective == Collective::kAllToAllV) {
    const std::vector<size_t> each(kRanks, 1);
    call.tables = std::make_shared<comm::Tables>(comm::Tables{each, each, each, each});
  }
  return call;
}

// A call that this rank's caller has made, as its record has it.
void makeCall(Member& at, const comm::Call& call, Input& in) {
  const auto how = in.take<uint8_t>();
  const auto token = at.recorder->begin(call, call.fingerprint(how % 4), how / 4 % 2 != 0, 0);
  at.recorder->progressed(token, how / 8 % 4 - 1, 0, 1);
  if (how / 32 % 4 == 3) at.recorder->ended(token, CallState::kDone, 1);
}

comm::Position positionFrom(const comm::Call& call, Input& in) {
  const auto how = in.take<uint8_t>();
  comm::Position at{call.fingerprint(how % 4), how / 4 % 4 == 2 ? 5u : 0u, static_cast<CallState>(how / 16 % 5), 0};
  if (how / 4 % 4 == 3) at.call = in.take<link::Fingerprint>();
  at.waitingFor = in.take<int8_t>();
  return at;
}

// Mostly to the question that the watch asks.
comm::Question askedFrom(const comm::Call& call, Input& in) {
  const auto how = in.take<uint8_t>();
  const CallLine line = how < 200 ? comm::lineOf(call) : static_cast<CallLine>(how % 3);
  return {line, how / 4 % 4u, how < 240 ? 0 : 1};
}

// What such a rank could say, or one byte of it changed.
Bytes answerFrom(const comm::Call& call, Input& in) {
  const auto what = in.take<uint8_t>(), more = in.take<uint8_t>();
  const auto has = [&](int bit) { return (what >> bit & 1) != 0; };
  comm::StateReply said;
  said.asked = askedFrom(call, in);
  if (has(0)) said.same = positionFrom(call, in);
  if (has(1)) said.last = positionFrom(call, in);
  if (has(2)) said.counts = {in.take<uint8_t>() % 3u, in.take<uint8_t>() % 3u};
  said.counterpart = has(3);
  if (has(4)) said.stuck = comm::Stuck{static_cast<CallLine>(more % 3), positionFrom(call, in)};
  said.split = has(5);
  if (has(6)) {
    const auto where = in.take<uint8_t>();
    said.elsewhere = comm::Elsewhere{where < 240 ? kIds[where % 2] : in.take<uint64_t>(),
                                     in.take<int8_t>(),
                                     {static_cast<CallLine>(where / 2 % 3), positionFrom(call, in)}};
  }
  if (has(7)) said.onlyReadies = more / 4 % 2 != 0;
  Bytes bytes = comm::encode(said);
  if (more >= 224) bytes[in.take<uint8_t>() % bytes.size()] = in.take<std::byte>();
  return bytes;
}

void step(Member& here, Member& there, comm::StallDetector& watch, const comm::Call& call, Input& in) {
  const auto what = in.take<uint8_t>();
  const int peer = 1 + what / 8 % 2;
  switch (what % 8) {
    case 0:
    case 1: {
      const auto bytes = in.bytes(in.take<uint8_t>());
      return here.plane->answer(peer, {bytes.begin(), bytes.end()}, what >= 128);
    }
    case 2:
    case 3:
      return here.plane->answer(peer, answerFrom(call, in), what >= 128);
    case 4: {  // as one who is asked would, of this process
      const comm::Question question{static_cast<CallLine>(what / 16 % 3), in.take<uint8_t>() % 4u,
                                    what >= 128 ? peer : 0};
      return here.plane->answer(peer, comm::respondFrom(here.recorder)(comm::encode(question)), what >= 128);
    }
    case 5:
      return makeCall(what < 128 ? there : here, callFrom(in), in);
    case 6:
      watch.doubt(peer);
      (void)watch.departureOf(peer);
      return;
    default:
      watch.look(peer, what / 64, what >= 128, [] { return std::string("a rank"); });
  }
}

void run(Input in) {
  const auto how = in.take<uint8_t>();
  Member here(kIds[0], how % 4 == 3 ? std::chrono::milliseconds(0) : std::chrono::hours(1));
  Member there(kIds[1], std::chrono::hours(1));
  const comm::Call call = callFrom(in);
  makeCall(here, call, in);
  comm::StallDetector watch(*here.team, call, how / 8 % 4, how / 4 % 2 != 0);
  try {
    for (int steps = 0; !in.empty() && steps < kMostSteps; ++steps) step(here, there, watch, call, in);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kRemote || error.code() == ErrorCode::kInvalidUsage ||
            error.code() == ErrorCode::kTimeout);
    require(std::string(error.what()).find("rank ") != std::string::npos);
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::run({data, size});
  return 0;
}
