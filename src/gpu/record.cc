#include "gpu/record.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace tutti::gpu {
namespace {

// A look that decides nothing: relaxed, as the kernel's stores are.
uint32_t peek(uint32_t& word) noexcept { return std::atomic_ref(word).load(std::memory_order_relaxed); }

// For the next call. Relaxed: the kernel of the last one is through with the words, but has not told so with an order.
void clear(device::Progress& words) noexcept {
  const device::Progress fresh;
  const auto set = [](uint32_t& word, uint32_t value) {
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
  };
  set(words.begun, fresh.begun);
  set(words.ended, fresh.ended);
  set(words.iteration, fresh.iteration);
  set(words.iterations, fresh.iterations);
  set(words.waitingFor, fresh.waitingFor);
}

}  // namespace

// What the channels of a call say together.
struct DeviceRecord::Sum {
  bool begun = false, ended = true;
  uint64_t position = 0;  // changes with every round
  uint64_t done = 0, rounds = 0;
  int waitingFor = -1;  // of the channel that is the furthest behind
};

DeviceRecord::DeviceRecord(comm::Recorder& recorder, device::Progress* words, uint32_t channels)
    : recorder_(recorder), words_(words), channels_(channels) {
  for (size_t i = 0; i < wordsFor(channels); ++i) new (words + i) device::Progress;
}

device::Progress* DeviceRecord::place(bool stays) noexcept {
  const auto oldest = std::ranges::find_if(running_, [](const Running& call) { return call.row.has_value(); });
  const uint64_t first = oldest == running_.end() ? group_ : std::min(group_, *oldest->row);
  if (stays || next_ - first >= kRows) return nullptr;
  device::Progress* const words = wordsOf(next_++);
  std::for_each_n(words, channels_, clear);
  return words;
}

void DeviceRecord::launched(const comm::Call& call, uint64_t number, const link::Fingerprint& planned,
                            const device::KernelWork& work) {
  const uint64_t now = readTicks();
  const comm::Recorder::Token token = recorder_.begin(call, call.fingerprint(number), false, now);
  recorder_.started(token, planned);
  recorder_.moved(token, comm::CallState::kQueued);  // all its links stand
  Running running{token, call, number, {}, work.layout.channels, work.program.maxLag, now};
  // The last row that got these words.
  if (work.seat.progress != nullptr) {
    const uint64_t place = static_cast<uint64_t>(work.seat.progress - words_) / channels_;
    running.row = next_ - kRows + (place + kRows - next_ % kRows) % kRows;
  }
  running_.push_back(running);
}

DeviceRecord::Sum DeviceRecord::sumOf(const Running& call) const noexcept {
  Sum sum;
  uint64_t least = ~uint64_t{0};
  for (uint32_t channel = 0; channel < call.channels; ++channel) {
    device::Progress& words = wordsOf(*call.row)[channel];
    const uint32_t begun = peek(words.begun);
    const bool ended = begun != 0 && peek(words.ended) == begun;
    sum.begun = sum.begun || begun != 0;
    sum.ended = sum.ended && ended;
    if (begun == 0) continue;
    const uint64_t iterations = peek(words.iterations), iteration = ended ? iterations : peek(words.iteration);
    sum.position += iteration + 1;
    sum.rounds += iterations - std::min<uint64_t>(iterations, call.lag);
    sum.done += iteration - std::min<uint64_t>(iteration, call.lag);
    const uint32_t waitingFor = peek(words.waitingFor);
    if (ended || waitingFor == device::kNobody || iteration >= least) continue;
    least = iteration;
    sum.waitingFor = static_cast<int>(waitingFor);
  }
  return sum;
}

// The word of whom a channel waited for stays when that wait is over: it counts while nothing moves.
void DeviceRecord::note(Running& call) noexcept {
  const Sum sum = sumOf(call);
  if (!sum.begun) return;
  if (!call.begun) recorder_.moved(call.token, comm::CallState::kRunning);
  call.begun = true;
  const bool stands = sum.position == call.position;
  call.position = sum.position;
  call.waitingFor = stands && !sum.ended ? sum.waitingFor : -1;
  recorder_.progressed(call.token, call.waitingFor, sum.done, sum.rounds);
  if (sum.ended) end(call, comm::CallState::kDone);
}

// By its number and all that its stamp is made of. One side of a message waits for what comes, the other one for room.
bool DeviceRecord::isIn(const Running& call, const StandingStream& stream) noexcept {
  const engine::Awaited& awaited = stream.awaited;
  if (call.row || call.ended || static_cast<uint32_t>(call.number) != awaited.mine.operation) return false;
  if (call.call.fingerprint(call.number) != comm::tagged(awaited.mine.call(), call.call.tag)) return false;
  if (call.call.collective != Collective::kSendRecv) return true;
  return call.call.root == awaited.peer && call.call.sends == (awaited.mark == nullptr);
}

// How many rounds it has done, the stream does not tell.
void DeviceRecord::noteStream(const std::optional<StandingStream>& stream) noexcept {
  for (Running& call : running_) {
    const bool stands = stream && isIn(call, *stream);
    if (!stands && (call.row || call.waitingFor < 0)) continue;
    if (!std::exchange(call.begun, true)) recorder_.moved(call.token, comm::CallState::kRunning);
    call.waitingFor = stands ? stream->awaited.peer : -1;
    if (stands) call.position = stream->position;
    recorder_.progressed(call.token, call.waitingFor, 0, 0);
  }
}

void DeviceRecord::end(Running& call, comm::CallState how) noexcept {
  const uint64_t now = readTicks();
  recorder_.ended(call.token, how, now);
  if (how == comm::CallState::kDone && !call.ended) recorder_.completed(call.call, now - call.since);
  call.ended = true;
  call.waitingFor = -1;
}

// Calls of one line run one after the other: when one has begun, those before it have ended, whatever their words.
void DeviceRecord::endOvertaken() noexcept {
  const auto sameLine = [](const Running& a, const Running& b) {
    const comm::CallLine line = lineOf(a.call);
    return line == lineOf(b.call) && (line == comm::CallLine::kCollective || a.call.root == b.call.root);
  };
  auto last = running_.end();  // behind the last that has begun
  while (last != running_.begin() && !std::prev(last)->begun) --last;
  for (auto call = running_.begin(); call != last; ++call) {
    if (call->row || call->ended) continue;
    const auto isLater = [&](const Running& other) { return other.begun && sameLine(*call, other); };
    if (std::any_of(std::next(call), last, isLater)) end(*call, comm::CallState::kDone);
  }
}

void DeviceRecord::look() noexcept {
  for (Running& call : running_)
    if (call.row && !call.ended) note(call);
  if (std::ranges::any_of(running_, [](const Running& call) { return !call.row; })) endOvertaken();
  // The last one stays until the GPU itself says that it has ended.
  while (running_.size() > 1 && (running_.front().ended || running_.size() > comm::Recorder::kEntries))
    running_.pop_front();
}

std::optional<StandingCall> DeviceRecord::standing() const {
  const auto found = std::ranges::find_if(running_, [](const Running& call) { return call.waitingFor >= 0; });
  if (found == running_.end()) return std::nullopt;
  return StandingCall{found->token, found->call, found->number, found->waitingFor, found->position};
}

void DeviceRecord::endAll(bool failed) noexcept {
  look();
  for (Running& call : running_)
    if (!call.ended) end(call, failed || (call.begun && call.row) ? comm::CallState::kFailed : comm::CallState::kDone);
  running_.clear();
}

}  // namespace tutti::gpu
