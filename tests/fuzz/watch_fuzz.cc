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

void putPosition(Writer& out, const comm::Call& call, Input& in) {
  const auto how = in.take<uint8_t>();
  auto mark = call.fingerprint(how % 4);
  if (how / 4 % 4 == 3) mark = in.take<link::Fingerprint>();
  const auto words = mark.words();
  out.value(words[0]).value(words[1]).value<uint8_t>(how / 16 % 6).value<int32_t>(in.take<int8_t>());
}

// As diagnose/state_reply.cc writes it.
Bytes answerFrom(const comm::Call& call, Input& in) {
  const auto what = in.take<uint8_t>();
  Writer out;
  out.value<uint32_t>(in.take<uint8_t>() % 4);
  for (const int bit : {0, 1}) {
    out.value<uint8_t>(what >> bit & 1);
    if ((what >> bit & 1) != 0) putPosition(out, call, in);
  }
  out.value<uint8_t>(what >> 2 & 1);
  if ((what >> 2 & 1) != 0) out.value<uint64_t>(in.take<uint8_t>() % 3).value<uint64_t>(in.take<uint8_t>() % 3);
  out.value<uint8_t>(what >> 3 & 1);  // the counterpart has been made
  out.value<uint8_t>(in.take<uint8_t>() % 4).value<uint8_t>(what >> 4 & 1);
  if ((what >> 4 & 1) != 0) putPosition(out, call, in);
  out.value<uint32_t>(what >> 5 & 1).value<uint8_t>(what >> 6 & 1);
  if ((what >> 6 & 1) == 0) return out.take();
  const auto where = in.take<uint8_t>();
  out.value(where < 240 ? kIds[where % 2] : in.take<uint64_t>()).value<int32_t>(in.take<int8_t>());
  out.value<uint8_t>(where / 2 % 4);
  putPosition(out, call, in);
  return out.take();
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
      const comm::Question question{static_cast<CallLine>(what / 16 % 3), in.take<uint8_t>(), peer};
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
