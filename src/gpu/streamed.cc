#include "gpu/streamed.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

namespace tutti::gpu {

using engine::Awaited;
using engine::WaitJournal;

namespace {

// A look at the words that a stream waits for goes through the GPU: now and then is enough.
constexpr std::chrono::milliseconds kBetweenLooks(10);
constexpr std::chrono::milliseconds kLettingGo(20);  // at a time

device::Report reportOf(device::Fault fault, const Awaited& awaited) {
  device::Report report;
  report.fault = fault;
  report.peer = awaited.peer;
  report.expected = awaited.bytes;
  report.mine = awaited.mine;
  return report;
}

}  // namespace

DeviceStreamed::DeviceStreamed(device::Device& device, const DevicePeers& peers, std::chrono::milliseconds timeout)
    : device_(device),
      peers_(peers),
      timeout_(timeout),
      cursor_(device.allocatePinned(sizeof(engine::StreamCursor))),
      queue_(device.newSideQueue()) {
  new (cursor_->data) engine::StreamCursor;
}

engine::StreamedLane DeviceStreamed::laneFor(const comm::Call& call, const DeviceProgram& program, uint64_t number,
                                             std::byte* barrierByte) {
  engine::StreamedWork streamed;
  streamed.schedule = &program.schedule;
  streamed.work = toWork(call, number, program.schedule, program.chunkBytes, 0, 1);
  if (call.tables) streamed.work.layout.speaks = true;
  if (call.collective == Collective::kBarrier) streamed.work.input = streamed.work.output = barrierByte;
  streamed.factorAt = call.factorAt;
  streamed.scratch = program.program.scratch;
  streamed.scratchBytes = program.program.scratchBytes;
  for (const int peer : program.schedule.inPeers) streamed.ins.push_back(peers_.streamedRecvEnd(peer));
  for (const int peer : program.schedule.outPeers) streamed.outs.push_back(peers_.streamedSendEnd(peer));
  return engine::StreamedLane(std::move(streamed));
}

// Those that have ended, but for those of graphs. Needs the mutex. Acquire: pairs with the stream's write.
void DeviceStreamed::throwAwayTrails() {
  const uint64_t ended = std::atomic_ref(cursor().ended).load(std::memory_order_acquire);
  journals_.erase(journals_.begin(), journals_.lower_bound(ended));
}

engine::StreamedQueue DeviceStreamed::newJournal(bool stays) {
  std::lock_guard lock(mutex_);
  throwAwayTrails();
  constexpr uint64_t kPlacesOfGraph = uint64_t{1} << 32;  // at most
  const uint64_t first = stays ? WaitJournal::kOfGraphs + graphs_++ * kPlacesOfGraph : last_ ? last_->end() : 1;
  auto journal = std::make_shared<WaitJournal>(first);
  journals_[first] = journal;
  if (!stays) last_ = journal;
  return {*queue_, cursor(), journal};
}

std::vector<Awaited> DeviceStreamed::awaited(uint64_t position) const {
  std::lock_guard lock(mutex_);
  const auto next = journals_.upper_bound(position);
  return next == journals_.begin() ? std::vector<Awaited>() : std::prev(next)->second->at(position);
}

// A slot that is full, but not of what is expected.
std::optional<device::Report> DeviceStreamed::mismatch(const Awaited& awaited) {
  if (awaited.mark == nullptr) return std::nullopt;
  const uint64_t full = device_.readWord(&awaited.mark->full);
  if (full == 0 || full == awaited.value) return std::nullopt;
  const auto theirs =
      engine::fingerprintOf(device_.readWord(&awaited.mark->first), device_.readWord(&awaited.mark->second));
  const uint64_t bytes = device_.readWord(&awaited.mark->bytes);
  const bool sameCall = engine::tagOf(theirs, awaited.bytes) == awaited.value;
  device::Report report = reportOf(sameCall ? device::Fault::kBytes : device::Fault::kMismatch, awaited);
  report.bytes = bytes;
  report.theirs = theirs;
  return report;
}

bool DeviceStreamed::stood(std::chrono::steady_clock::time_point now) noexcept {
  if (cursor().stands()) return true;
  since_ = looked_ = now;
  standing_.reset();
  return false;
}

std::optional<StandingStream> DeviceStreamed::standing() const noexcept {
  return standing_ && standing_->position < WaitJournal::kOfGraphs ? standing_ : std::nullopt;
}

// As look(): for what has come the stream needs no longer stand.
void DeviceStreamed::findMissing(const std::vector<Awaited>& all, std::chrono::steady_clock::time_point now) {
  const uint64_t here = position();
  const auto missing =
      std::ranges::find_if(all, [this](const Awaited& one) { return device_.readWord(one.word) != one.value; });
  standing_.reset();
  if (missing != all.end() && stood(now)) standing_ = {*missing, here};
}

// What was read counts only if the stream has stood all the while.
std::optional<device::Report> DeviceStreamed::look() {
  const auto now = std::chrono::steady_clock::now();
  if (!stood(now) || now - looked_ < kBetweenLooks) return std::nullopt;
  looked_ = now;
  const std::vector<Awaited> all = awaited(position());
  for (const Awaited& one : all)
    if (auto report = mismatch(one)) return stood(now) ? report : std::nullopt;
  findMissing(all, now);
  if (!standing_ || now - since_ < timeout_) return std::nullopt;
  return reportOf(device::Fault::kDeadline, standing_->awaited);
}

void DeviceStreamed::letGo() {
  const auto until = std::chrono::steady_clock::now() + kLettingGo;
  for (uint64_t here = position(); here != 0 && std::chrono::steady_clock::now() < until; here = position()) {
    std::vector<device::WordOp> ops;
    for (const Awaited& one : awaited(here)) ops.push_back({device::WordOp::Kind::kWrite, one.word, one.value});
    device_.writeWords(ops);
    for (int i = 0; i < 100 && position() == here; ++i) std::this_thread::yield();
  }
}

}  // namespace tutti::gpu
