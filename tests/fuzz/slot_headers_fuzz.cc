// The memory of links that a hostile peer shares: headers, payloads and counters of released slots, with anything in
// them at any time, also while they are read, as a lane of a collective and as the self-test of a new link read them.
// Nothing is read or written outside of the links and the caller's buffers; a slot of another call, or of another
// length, fails the call, which tells what it saw; and a self-test passes only what came as it was sent.
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/lane.h"
#include "fuzz/input.h"
#include "link/self_test.h"
#include "schedule/algorithm.h"
#include "support/sanitized.h"
#include "team/call.h"
#include "window/own_window.h"

namespace tutti::fuzz {
namespace {

using schedule::Algorithm;

constexpr int kMostSteps = 128;
constexpr uint32_t kSlotBytes = 256;
constexpr size_t kCount = 64;

// One direction of a link, with no byte of memory behind it.
struct Memory {
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  Memory(uint32_t slots, uint32_t headers)
      : lines(link::Fifo::bytesFor(kSlotBytes, slots, headers) / sizeof(Line)),
        fifo(link::Fifo::over(lines.front().bytes, kSlotBytes, slots, headers)) {}
  size_t bytes() const noexcept { return lines.size() * sizeof(Line); }

  std::vector<Line> lines;
  link::Fifo fifo;
};

void change(Memory& memory, Input& in) {
  const auto place = in.take<uint16_t>();
  memory.lines.front().bytes[place % memory.bytes()] ^= std::byte{in.take<uint8_t>()};
}

// A peer that changes a byte to and fro for as long as this lives.
class Restless {
 public:
  Restless(Memory& memory, Input& in)
      : byte_(reinterpret_cast<uint8_t&>(memory.lines.front().bytes[in.take<uint16_t>() % memory.bytes()])),
        change_(in.take<uint8_t>()),
        thread_([this] {
          for (running_ = true; !over_; byte_.fetch_xor(change_)) {
          }
        }) {
    while (!running_) std::this_thread::yield();
  }
  ~Restless() {
    over_ = true;
    thread_.join();
  }
  Restless(const Restless&) = delete;
  Restless& operator=(const Restless&) = delete;

 private:
  std::atomic_ref<uint8_t> byte_;
  uint8_t change_;
  std::atomic<bool> running_{false}, over_{false};
  std::thread thread_;
};

// --- a lane ---

// A window that a peer has passed, of two pieces.
std::shared_ptr<window::View> viewOfPeer() {
  UniqueFd file = createMemoryFile("fuzz", 2 * window::kPieceBytes);
  const window::Card card{window::kMagic, {1, 2}};
  require(::pwrite(file.get(), &card, sizeof card, 0) == static_cast<ssize_t>(sizeof card));
  std::string why;
  auto view = window::View::of(std::move(file), why);
  require(view != nullptr);
  return view;
}

struct Links {
  // `spare`: more lines than slots, each with a short one.
  Links(const schedule::Schedule& schedule, uint32_t depth, bool mapped, bool spare)
      : view(mapped ? viewOfPeer() : nullptr) {
    const uint32_t lines = spare ? 2 * depth : depth;
    for (const int peer : schedule.inPeers) {
      auto& memory = ins.emplace_back(std::make_unique<Memory>(depth, lines));
      recv.push_back(link::RecvEnd{memory->fifo, 0, nullptr, nullptr, peer});
      recv.back().window = view.get();
    }
    for (const int peer : schedule.outPeers) {
      auto& memory = outs.emplace_back(std::make_unique<Memory>(depth, lines));
      send.push_back(link::SendEnd{memory->fifo, 0, 0, nullptr, nullptr, peer});
    }
  }
  std::shared_ptr<window::View> view;
  std::vector<std::unique_ptr<Memory>> ins, outs;
  std::vector<link::RecvEnd> recv;
  std::vector<link::SendEnd> send;
};

uint32_t lengthFrom(Input& in) {
  constexpr uint32_t kLikely[] = {128, 128, 128, 256, 64, 32, 0};
  const auto which = in.take<uint8_t>() % 8;
  return which < 7 ? kLikely[which] : in.take<uint32_t>();
}

// Around both ends of the window, or anywhere.
uint64_t placeFrom(Input& in) {
  const auto which = in.take<uint8_t>();
  const uint64_t near = in.take<uint16_t>();
  if (which % 4 == 0) return in.take<uint64_t>();
  return (which % 4 == 1 ? 2 : 1) * window::kPieceBytes + near - (which % 4 == 3 ? 0 : 256);
}

void post(link::RecvEnd& at, const link::Fingerprint& right, Input& in) {
  link::SlotHeader& header = at.fifo.line(at.received);
  const auto how = in.take<uint8_t>();
  header.fingerprint = right;
  header.bytes = lengthFrom(in);
  if (how % 8 == 7) {
    auto words = right.words();
    words[how / 8 % 2] ^= uint64_t{1} << in.take<uint8_t>() % 64;
    header.fingerprint = std::bit_cast<link::Fingerprint>(words);
  }
  if (how >= 128) {
    const link::RemoteAddress lent{placeFrom(in), how % 4 == 0 ? in.take<uint64_t>() : link::kWindow};
    std::memcpy(header.inlined, &lent, sizeof lent);
    header.carried = link::PayloadLocation::kAtSender;
  } else {
    header.carried = link::PayloadLocation::kInSlot;
  }
  header.sequence.store(how % 16 == 14 ? in.take<uint64_t>() : at.received + 1);
}

schedule::Schedule scheduleFrom(Input& in, Collective& collective) {
  constexpr Collective kSome[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                  Collective::kBroadcast, Collective::kReduce,    Collective::kAllToAll};
  collective = kSome[in.take<uint8_t>() % std::size(kSome)];
  const auto has = schedule::algorithmsFor(collective);
  const Algorithm algorithm = has[in.take<uint8_t>() % has.size()];
  schedule::Shape shape;
  shape.collective = collective;
  shape.size = 2 + in.take<uint8_t>() % 3;
  return schedule::build(algorithm, shape, in.take<uint8_t>() % shape.size);
}

using Kind = engine::LaneFailure::Kind;

void judge(engine::LaneState state, const engine::LaneFailure& failure, const link::Fingerprint& mine) {
  require((state == engine::LaneState::kFailed) == (failure.kind != Kind::kNone));
  require(failure.kind != Kind::kMismatch || failure.theirs != mine);
  require(failure.kind != Kind::kBytes || (failure.theirs == mine && failure.bytes != failure.expected));
}

void runLane(Input in, bool restless) {
  comm::Call call;
  const schedule::Schedule schedule = scheduleFrom(in, call.collective);
  const auto how = in.take<uint8_t>();
  Links links(schedule, std::bit_ceil<uint32_t>(std::max<uint32_t>(schedule.depth, 2)), (how & 1) != 0, (how & 2) != 0);
  std::vector<std::byte> input(kCount * sizeof(int32_t) * static_cast<size_t>(schedule.size)), output(input.size());
  call.type = DataType::kInt32;
  call.count = kCount;
  call.send = input.data();
  call.recv = output.data();
  engine::Binding binding;
  binding.schedule = &schedule;
  for (auto& end : links.recv) binding.ins.push_back(&end);
  for (auto& end : links.send) binding.outs.push_back(&end);
  binding.prepare(kSlotBytes);
  const engine::LaneWork work = comm::toWork(call, 1, schedule, kSlotBytes / schedule.maxSpan / 16 * 16, 0, 1);
  std::optional<Restless> peer;
  if (restless && !links.ins.empty()) peer.emplace(*links.ins.front(), in);
  engine::Lane lane;
  lane.start(binding, work);
  auto state = engine::LaneState::kBlocked;
  for (int steps = 0; steps < kMostSteps && !in.empty() && state == engine::LaneState::kBlocked; ++steps) {
    const auto what = in.take<uint8_t>();
    bool moved = false;
    if (what % 4 < 2 && !links.recv.empty()) {
      post(links.recv[what / 4 % links.recv.size()], work.fingerprint, in);
    } else if (what % 4 == 2 && !links.send.empty()) {
      auto& end = links.send[what / 4 % links.send.size()];
      end.fifo.released->value.store(what < 240 ? end.posted : in.take<uint64_t>());
    } else if (!links.ins.empty()) {
      change(*links.ins[what / 4 % links.ins.size()], in);
    }
    state = lane.run(moved);
  }
  judge(state, lane.failure(), work.fingerprint);
}

// --- the self-test ---

class End : public link::Connection {
 public:
  End(const link::Fifo& out, const link::Fifo& in) {
    send.fifo = out;
    recv.fifo = in;
  }
};

void runSelfTest(Input in) {
  Memory there(4, 4), back(4, 4);
  End ours(there.fifo, back.fifo), theirs(back.fifo, there.fifo);
  link::SelfTest test(ours, 0, 1, there.fifo.depth), honest(theirs, 1, 0, back.fifo.depth);
  bool changed = false;
  for (int turns = 0; turns < kMostSteps; ++turns) {
    try {
      honest.advance();
    } catch (const Error&) {
      require(changed);
    }
    if (!in.empty() && in.take<uint8_t>() % 2 != 0) {
      change(in.take<uint8_t>() % 4 == 0 ? there : back, in);
      changed = true;
    }
    try {
      if (test.advance()) return;
    } catch (const Error& error) {
      return require(changed && error.code() == ErrorCode::kRemote);
    }
  }
  require(changed);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::Input in(data, size);
  const auto how = in.take<uint8_t>();
  if (how % 4 == 0)
    tutti::fuzz::runSelfTest(in);
  else
    tutti::fuzz::runLane(in, how / 4 % 16 == 15 && !tutti::kThreadSanitized);
  return 0;
}
