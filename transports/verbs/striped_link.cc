#include "transports/verbs/striped_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::verbs {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kLeastPart = 16 << 10;  // below twice that, a payload is not worth two paths
constexpr uint32_t kPartUnit = 256;
constexpr milliseconds kFirstPause(500), kLongestPause(60'000);  // between tries to revive a path
constexpr milliseconds kDrain(10'000);                           // for a device to report what is broken

// What goes over of a header: all but its sequence number and what is unused.
constexpr size_t kHeadBegin = offsetof(tuttiSlotHeader, fingerprint), kHeadEnd = offsetof(tuttiSlotHeader, unused);
static_assert(kHeadEnd - kHeadBegin <= kMostCopied);

bool isInlined(const tuttiSlotHeader& header) noexcept { return header.bytes <= TUTTI_INLINE_BYTES; }
bool isLent(const tuttiSlotHeader& header) noexcept { return !isInlined(header) && header.carried == TUTTI_LENT; }
const std::byte* lentAt(const tuttiSlotHeader& header) noexcept {
  uint64_t at = 0;
  std::memcpy(&at, header.inlined, sizeof at);
  return reinterpret_cast<const std::byte*>(at);
}

uint64_t load(uint64_t& word) noexcept { return std::atomic_ref(word).load(std::memory_order_acquire); }
void store(uint64_t& word, uint64_t value) noexcept { std::atomic_ref(word).store(value, std::memory_order_release); }

uint8_t maskOf(uint8_t parts) noexcept { return static_cast<uint8_t>((1u << parts) - 1); }

struct Range {
  uint32_t begin, end;
};
Range rangeOf(uint32_t bytes, uint8_t parts, uint8_t number) noexcept {
  const uint32_t each = ((bytes + parts - 1) / parts + kPartUnit - 1) / kPartUnit * kPartUnit;
  return {std::min(bytes, each * number), std::min(bytes, each * (number + 1u))};
}

}  // namespace

StripedLink::StripedLink(const tuttiFifo& send, const tuttiFifo& recv, void* memory, bool leads,
                         std::function<void(const std::string&)> log)
    : send_(send),
      recv_(recv),
      memory_(static_cast<std::byte*>(memory)),
      leads_(leads),
      log_(std::move(log)),
      sentOf_(send.depth),
      coming_(recv.depth) {}

// No device uses what is held once its queue pairs are gone.
StripedLink::~StripedLink() {
  for (Holding& holding : holdings_) holding.count = 1;
  paths_.clear();
  while (!holdings_.empty()) letGo(holdings_.back().memory.number);
}

// Parts of all slots, releases of all slots, and some about paths.
int StripedLink::mostNotes(uint32_t depth) noexcept {
  return static_cast<int>(depth) * (kMostPaths + 2) + 8 * kMostPaths;
}

// A header beside a slot's parts.
int StripedLink::mostWrites(uint32_t depth) noexcept { return mostNotes(depth) + static_cast<int>(depth); }

void StripedLink::addPath(std::unique_ptr<Queue> queue, const QueueAddress& peer) {
  paths_.push_back(std::make_unique<Path>(std::move(queue), peer, mostNotes(send_.depth), mostWrites(send_.depth)));
  paths_.back()->have.resize(send_.depth);
}

bool StripedLink::begin() noexcept try {
  for (const auto& path : paths_)
    if (!path->live(0)) {
      fail(fmt::format("{} cannot be connected: {}", path->queue().name(), std::strerror(errno)));
      return false;
    }
  return true;
} catch (const std::exception& error) {
  fail(error.what());
  return false;
}

Progress StripedLink::progress(TimePoint now) noexcept try {
  if (failed_) return Progress::kFailed;
  now_ = now;
  moved_ = false;
  for (const auto& path : paths_)
    while (hear(*path)) {
    }
  deliver();
  for (const auto& path : paths_) lookAfter(*path);
  while (!failed_ && (say() || give() || sendAgain() || sendNew())) moved_ = true;
  if (failed_) return Progress::kFailed;
  return moved_ ? Progress::kAdvanced : Progress::kIdle;
} catch (const std::exception& error) {
  fail(error.what());
  return Progress::kFailed;
}

bool StripedLink::sending() const noexcept {
  if (failed_) return false;
  auto& header = send_.headers[at(sent_)];
  const auto isBusy = [](const auto& path) {
    return !path->isUp() ? path->state == Path::State::kStopping : !path->isQuiet();
  };
  return load(header.sequence) == sent_ + 1 || !again_.empty() || !notes_.empty() || load(*recv_.released) != given_ ||
         std::ranges::any_of(paths_, isBusy);
}

bool StripedLink::arm() noexcept {
  for (const auto& path : paths_)
    if (!path->queue().arm() && path->state != Path::State::kStopped) return false;
  return true;
}

// ---- What comes --------------------------------------------------------------------------------------------------

// False when there is no more, or nothing to hear.
bool StripedLink::hear(Path& path) {
  if (failed_) return false;
  constexpr int kBatch = 16;
  std::array<Completion, kBatch> completions;
  const int count = path.queue().poll(completions);
  if (count < 0) breakDown(path, fmt::format("its completions cannot be read: {}", std::strerror(errno)));
  for (int i = 0; i < count && !failed_; ++i) take(path, completions[static_cast<size_t>(i)]);
  const bool isAlive = path.isUp() || path.state == Path::State::kReviving;
  if (isAlive && !failed_ && !path.expectMore())
    breakDown(path, fmt::format("it takes no more notes: {}", std::strerror(errno)));
  return count == kBatch;
}

void StripedLink::take(Path& path, const Completion& completion) {
  if (completion.life != path.life()) return;
  path.account(completion);
  if (completion.what == Completion::What::kBroken) return breakDown(path, path.queue().textOf(completion.status));
  if (completion.what == Completion::What::kWritten) return landed(path);
  moved_ = true;
  heard(Note::of(completion.note), path);
}

void StripedLink::heard(const Note& note, Path& by) {
  const auto path = [&]() -> Path& {
    static_assert(kMostPaths <= 16);
    return *paths_[std::min<size_t>(note.path, paths_.size() - 1)];
  };
  if (note.kind != Note::Kind::kPart && note.kind != Note::Kind::kCredit && note.path >= paths_.size())
    return fail(fmt::format("the peer speaks of path {}, and there are {}", note.path, paths_.size()));
  switch (note.kind) {
    case Note::Kind::kPart:
      return partCame(note);
    case Note::Kind::kCredit:
      return credit(note.number);
    case Note::Kind::kRetire:
      return retireAsked(path(), note.value);
    case Note::Kind::kHave:
      return have(path(), note);
    case Note::Kind::kRetired:
      return retired(path(), note);
    case Note::Kind::kRevive:
      return reviveAsked(path(), note.value);
    case Note::Kind::kRevived:
      return works(by);  // it has come that way
  }
  fail(fmt::format("the peer sent a note that means nothing ({:#x})", note.bits()));
}

void StripedLink::partCame(const Note& note) {
  const uint64_t slot = unfold(note.number, arrived_);
  const auto parts = static_cast<uint8_t>(note.value + 1);
  if (slot < arrived_ || slot - arrived_ >= recv_.depth || note.path >= parts || parts > kMostPaths)
    return fail(fmt::format("part {} of {} of slot {} came where slot {} was due", note.path, parts, slot, arrived_));
  Coming& coming = coming_[slot & (recv_.depth - 1)];
  const auto bit = static_cast<uint8_t>(1u << note.path);
  if ((coming.mask & bit) != 0 || (coming.mask != 0 && coming.parts != parts))
    return fail(fmt::format("part {} of slot {} came twice, or cut in another way", note.path, slot));
  coming.parts = parts;
  coming.mask |= bit;
}

// Slots that are complete, in their order. All of them had come when this is called: one flush does for all.
void StripedLink::deliver() {
  for (bool seen = gpuSlots_.flush == nullptr; !failed_; ++arrived_) {
    Coming& next = coming_[arrived_ & (recv_.depth - 1)];
    if (next.mask == 0 || next.mask != maskOf(next.parts)) return;
    tuttiSlotHeader& header = recv_.headers[arrived_ & (recv_.depth - 1)];
    if (header.bytes > recv_.slotBytes)
      return fail(
          fmt::format("slot {} came with {} bytes, and has room for {}", arrived_, header.bytes, recv_.slotBytes));
    next = {};
    if (!seen && !isInlined(header)) {
      if (gpuSlots_.flush(gpuSlots_.with) != 0)
        return fail("the GPU cannot be told to see what has come to its memory");
      seen = true;
    }
    store(header.sequence, arrived_ + 1);
    moved_ = true;
  }
}

void StripedLink::credit(uint16_t number) {
  const uint64_t released = unfold(number, credited_);
  if (released <= credited_) return;  // said again, since the first time might have been lost
  if (released > sent_) return fail(fmt::format("the peer has released slot {} of {}", released, sent_));
  credited_ = released;
  std::erase_if(again_, [&](const Part& part) { return part.slot < credited_; });
  free();
}

void StripedLink::landed(Path& path) {
  if (path.state == Path::State::kReviving && !leads_) works(path);  // what has crossed is that it is alive
  for (; !path.flights.empty() && path.flights.front().write <= path.done(); path.flights.pop_front()) {
    const Path::Flight& flight = path.flights.front();
    if (flight.slot >= credited_) sentOf_[at(flight.slot)].done |= static_cast<uint8_t>(1u << flight.part);
  }
  free();
}

void StripedLink::free() {
  const uint64_t before = free_;
  while (free_ < sent_ && isOver(free_)) ++free_;
  if (free_ == before) return;
  store(*send_.released, free_);
  moved_ = true;
}

bool StripedLink::isOver(uint64_t slot) const noexcept {
  const Sent& sent = sentOf_[at(slot)];
  const auto isIts = [slot](const Path::Flight& flight) { return flight.slot == slot; };
  const auto carries = [&](const auto& path) { return std::ranges::any_of(path->flights, isIts); };
  return sent.done == maskOf(sent.parts) || (slot < credited_ && !(sent.lent && std::ranges::any_of(paths_, carries)));
}

// ---- What goes ---------------------------------------------------------------------------------------------------

// Each is true when it has said or sent something, so that there may be more.
bool StripedLink::say() {
  if (notes_.empty()) return false;
  Path* const path = anyUp();
  const std::vector<Note> together = notes_.front();
  if (path == nullptr || !path->hasRoomFor(together.size())) return false;
  for (const Note& note : together) {
    if (path->write(note)) continue;
    breakDown(*path, fmt::format("it takes nothing: {}", std::strerror(errno)));
    return true;
  }
  notes_.pop_front();
  return true;
}

bool StripedLink::give() {
  const uint64_t released = load(*recv_.released);
  if (released == given_ && !giveAgain_) return false;
  if (released > arrived_) {
    fail(fmt::format("slot {} was released before it came", released));
    return false;
  }
  Path* const path = anyUp();
  if (path == nullptr || !path->hasRoomFor(1)) return false;
  if (!path->write(Note{Note::Kind::kCredit, 0, 0, static_cast<uint16_t>(released)})) {
    breakDown(*path, fmt::format("it takes nothing: {}", std::strerror(errno)));
    return true;
  }
  given_ = released;
  giveAgain_ = false;
  return true;
}

bool StripedLink::sendAgain() {
  if (again_.empty()) return false;
  const Part part = again_.front();
  const std::vector<Path*> up = pathsUp();
  if (up.empty()) return false;
  Path& path = *up[(part.slot + part.number) % up.size()];
  if (!path.hasRoomFor(2)) return false;
  again_.pop_front();
  sendPart(part.slot, part.number, path);
  return true;
}

bool StripedLink::sendNew() {
  return sent_ - credited_ < send_.depth && load(send_.headers[at(sent_)].sequence) == sent_ + 1 && sendNext(sent_);
}

bool StripedLink::sendNext(uint64_t slot) {
  const std::vector<Path*> up = pathsUp();
  if (up.empty()) return false;
  const tuttiSlotHeader& header = send_.headers[at(slot)];
  const uint32_t bytes = header.bytes;
  if (bytes > send_.slotBytes) {
    fail(fmt::format("slot {} was posted with {} bytes, and has room for {}", slot, bytes, send_.slotBytes));
    return false;
  }
  const auto parts = static_cast<uint8_t>(std::clamp<size_t>(bytes / kLeastPart, 1, up.size()));
  for (uint8_t number = 0; number < parts; ++number)
    if (!up[number]->hasRoomFor(2)) return false;
  sentOf_[at(slot)] = {bytes, isLent(header), parts, 0, {}};
  sentInPlace_ += isLent(header) ? 1 : 0;
  ++sent_;
  for (uint8_t number = 0; number < parts; ++number) {
    if (up[number]->isUp())
      sendPart(slot, number, *up[number]);
    else
      again_.push_back({slot, number});
  }
  return true;
}

// The header goes with the first part. Where the path breaks over it, nobody knows what has come of it: who asks for
// that sends it again.
void StripedLink::sendPart(uint64_t slot, uint8_t number, Path& path) {
  Sent& sent = sentOf_[at(slot)];
  sent.pathOf[number] = static_cast<uint8_t>(indexOf(path));
  const bool begun = number > 0 || writeHead(slot, path);
  if (begun && (isInlined(send_.headers[at(slot)]) || writePayload(slot, number, path)))
    return path.flights.push_back({path.begun(), slot, number});
  if (!failed_) breakDown(path, fmt::format("it takes nothing: {}", std::strerror(errno)));
}

// Over there its payload is in the slot.
bool StripedLink::writeHead(uint64_t slot, Path& path) {
  tuttiSlotHeader header = send_.headers[at(slot)];
  const auto place = reinterpret_cast<const std::byte*>(&send_.headers[at(slot)]) + kHeadBegin;
  if (isLent(header)) {
    header.carried = 0;
    std::memset(header.inlined, 0, sizeof header.inlined);
  }
  Write one{.from = header.fingerprint, .bytes = kHeadEnd - kHeadBegin, .to = static_cast<size_t>(place - memory_)};
  one.copied = true;
  if (isInlined(header)) one.note = Note{Note::Kind::kPart, 0, 0, static_cast<uint16_t>(slot)}.bits();
  return path.write(one);
}

bool StripedLink::writePayload(uint64_t slot, uint8_t number, Path& path) {
  const tuttiSlotHeader& header = send_.headers[at(slot)];
  const Sent& sent = sentOf_[at(slot)];
  const auto [begin, end] = rangeOf(sent.bytes, sent.parts, number);
  const auto* const place = reinterpret_cast<std::byte*>(send_.slots) + at(slot) * size_t{send_.slotBytes} + begin;
  const bool inSlots = gpuSlots_.begin != nullptr;
  const std::byte* const base = inSlots ? static_cast<const std::byte*>(gpuSlots_.begin) : memory_;
  Write one{.from = place, .bytes = end - begin, .to = static_cast<size_t>(place - base), .inSlots = inSlots};
  if (isLent(header)) {
    one.from = lentAt(header) + begin;
    one.key = keyOf(lentAt(header), sent.bytes, path);
    if (!one.key) return fail(fmt::format("slot {} was posted in memory that is not held", slot)), false;
  }
  one.note = Note{Note::Kind::kPart, number, static_cast<uint8_t>(sent.parts - 1), static_cast<uint16_t>(slot)}.bits();
  one.copied = one.bytes <= kMostCopied && !inSlots;  // the processor copies
  return path.write(one);
}

// ---- Memory beside the slots ---------------------------------------------------------------------------------------

// On all devices or on none: a part may go any way.
bool StripedLink::hold(const tuttiTransportMemory& memory, size_t most, std::string& why) noexcept try {
  const auto known = std::ranges::find(holdings_, memory.number, [](const Holding& one) { return one.memory.number; });
  if (known != holdings_.end()) return ++known->count, true;
  Holding& made = holdings_.emplace_back(Holding{memory, 1, {}});
  try {
    made.devices.reserve(paths_.size());
    for (const auto& path : paths_) {
      auto cache = path->queue().memory();
      if (std::ranges::find(made.devices, cache, &Holding::OfDevice::cache) != made.devices.end()) continue;
      auto held = cache->hold(memory, most);
      if (!held.key) {
        why = std::move(held.why);
        return letGo(memory.number), false;
      }
      made.devices.push_back({std::move(cache), *held.key});
    }
  } catch (...) {
    letGo(memory.number);
    throw;
  }
  return true;
} catch (const std::exception&) {  // no memory for it
  return false;
}

void StripedLink::letGo(uint64_t memory) noexcept {
  const auto held = std::ranges::find(holdings_, memory, [](const Holding& one) { return one.memory.number; });
  if (held == holdings_.end() || --held->count > 0) return;
  for (const Holding::OfDevice& device : held->devices) device.cache->letGo(memory);
  holdings_.erase(held);
}

std::optional<uint32_t> StripedLink::keyOf(const std::byte* begin, size_t bytes, const Path& path) const noexcept {
  const auto cache = path.queue().memory();
  for (const Holding& holding : holdings_) {
    const auto* const first = static_cast<const std::byte*>(holding.memory.begin);
    if (begin < first || begin + bytes > first + holding.memory.bytes) continue;
    for (const Holding::OfDevice& device : holding.devices)
      if (device.cache == cache) return device.key;
  }
  return std::nullopt;
}

void StripedLink::takeBack(TimePoint now) noexcept try {
  if (failed_) return;
  now_ = now;
  const auto isOfLent = [&](const Path::Flight& flight) {
    return flight.slot >= free_ && sentOf_[at(flight.slot)].lent;
  };
  for (const auto& path : paths_) {
    while (path->isUp() && hear(*path)) {
    }
    if (path->isUp() && std::ranges::any_of(path->flights, isOfLent))
      breakDown(*path, "a call has failed whose memory was being sent");
  }
} catch (const std::exception& error) {
  fail(error.what());
}

// ---- Paths that break, and come back -----------------------------------------------------------------------------

void StripedLink::breakDown(Path& path, const std::string& why) {
  if (failed_ || path.state == Path::State::kStopping || path.state == Path::State::kStopped) return;
  const bool wasUp = path.isUp();
  path.pause = wasUp ? kFirstPause : std::min(2 * path.pause, kLongestPause);
  path.queue().stop();
  path.flights.clear();
  path.state = Path::State::kStopping;
  path.why = why;
  path.since = now_;
  broken_ += wasUp ? 1 : 0;
  if (anyUp() == nullptr) {
    deliver();  // what is complete is not lost with the last path
    std::string all;
    for (const auto& one : paths_) all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", nameOf(*one), one->why);
    return fail(all);
  }
  if (wasUp && log_) log_(fmt::format("{} is broken ({}): what went there goes other ways", nameOf(path), why));
  giveAgain_ = true;
  std::ranges::fill(path.have, 0);
  path.isAsking = true;
  ask(path);
  // What was asked or said on this one may be lost.
  for (const auto& other : paths_)
    if (other.get() != &path && other->isAsking) ask(*other);
  free();
}

void StripedLink::ask(Path& path) {
  notes_.push_back({{Note::Kind::kRetire, static_cast<uint8_t>(indexOf(path)), ++path.ownQuestion, 0}});
}

void StripedLink::retireAsked(Path& path, uint8_t question) {
  path.isAsked = true;
  path.question = question;
  breakDown(path, "the other end says that it is broken");
}

void StripedLink::answer(Path& path) {
  const auto index = static_cast<uint8_t>(indexOf(path));
  std::vector<Note> whole;
  for (uint64_t slot = arrived_; slot < arrived_ + recv_.depth; ++slot)
    if (const uint8_t mask = coming_[slot & (recv_.depth - 1)].mask; mask != 0)
      whole.push_back({Note::Kind::kHave, index, mask, static_cast<uint16_t>(slot)});
  whole.push_back({Note::Kind::kRetired, index, path.question, static_cast<uint16_t>(arrived_)});
  notes_.push_back(std::move(whole));
  path.isAsked = false;
}

void StripedLink::have(Path& path, const Note& note) {
  const uint64_t slot = unfold(note.number, sent_);
  if (path.isAsking && slot >= credited_ && slot < sent_) path.have[at(slot)] |= note.value;
}

void StripedLink::retired(Path& path, const Note& note) {
  if (!path.isAsking || note.value != path.ownQuestion) return;
  path.isAsking = false;
  const uint64_t arrived = unfold(note.number, sent_);
  if (arrived > sent_) return fail(fmt::format("the peer has got slot {} of {}", arrived, sent_));
  for (uint64_t slot = credited_; slot < sent_; ++slot) settle(slot, path, slot < arrived);
  free();
}

// What went this way is over there, or goes again.
void StripedLink::settle(uint64_t slot, const Path& path, bool arrived) {
  Sent& sent = sentOf_[at(slot)];
  for (uint8_t part = 0; part < sent.parts; ++part) {
    const auto bit = static_cast<uint8_t>(1u << part);
    const auto isIt = [&](const Part& one) { return one.slot == slot && one.number == part; };
    if (sent.pathOf[part] != indexOf(path) || std::ranges::any_of(again_, isIt)) continue;
    const bool isThere = arrived || (path.have[at(slot)] & bit) != 0;
    if (!isThere && (sent.done & bit) != 0)
      return fail(fmt::format("{} said that a part of slot {} had come, and it has not", nameOf(path), slot));
    if (isThere)
      sent.done |= bit;
    else
      again_.push_back({slot, part});
  }
}

// What takes time.
void StripedLink::lookAfter(Path& path) {
  if (failed_ || path.state == Path::State::kUp) return;
  if (path.state == Path::State::kStopping) {
    if (!path.isDrained()) {
      if (now_ - path.since > kDrain) fail(fmt::format("{} is broken, and does not say what has come", nameOf(path)));
      return;
    }
    if (path.isAsked) answer(path);
    if (path.isAsking) return;
    path.state = Path::State::kStopped;
    path.since = now_;
  }
  if (path.isAsked) answer(path);
  if (!leads_ || now_ - path.since < path.pause) return;
  path.since = now_;
  if (path.queue().portIsActive()) revive(path);
}

// In a next life, or once more in the one that the other end has not answered for.
void StripedLink::revive(Path& path) {
  if (path.state == Path::State::kStopped) {
    if (!path.live(path.life() + 1)) return path.queue().stop();
    path.state = Path::State::kReviving;
  }
  notes_.push_back({{Note::Kind::kRevive, static_cast<uint8_t>(indexOf(path)), static_cast<uint8_t>(path.life()), 0}});
}

// The answer goes that way itself: so each end uses it once it has seen that something crosses.
void StripedLink::reviveAsked(Path& path, uint8_t life) {
  const auto newer = static_cast<int8_t>(life - static_cast<uint8_t>(path.life()));
  if (path.state != Path::State::kStopped || newer <= 0 || !path.queue().portIsActive()) return;
  if (!path.live(path.life() + static_cast<uint32_t>(newer))) return path.queue().stop();
  path.state = Path::State::kReviving;
  if (!path.write(Note{Note::Kind::kRevived, static_cast<uint8_t>(indexOf(path)), life, 0}))
    breakDown(path, fmt::format("it takes nothing: {}", std::strerror(errno)));
}

void StripedLink::works(Path& path) {
  if (path.state != Path::State::kReviving) return;
  path.state = Path::State::kUp;
  ++revived_;
  if (log_) log_(fmt::format("{} works again", nameOf(path)));
}

// ------------------------------------------------------------------------------------------------------------------

std::string StripedLink::nameOf(const Path& path) const { return path.queue().name(); }

size_t StripedLink::indexOf(const Path& path) const noexcept {
  return static_cast<size_t>(std::ranges::find(paths_, &path, [](const auto& one) { return one.get(); }) -
                             paths_.begin());
}

Path* StripedLink::anyUp() noexcept {
  const auto found = std::ranges::find_if(paths_, [](const auto& path) { return path->isUp(); });
  return found == paths_.end() ? nullptr : found->get();
}

std::vector<Path*> StripedLink::pathsUp() const {
  std::vector<Path*> up;
  for (const auto& path : paths_)
    if (path->isUp()) up.push_back(path.get());
  return up;
}

void StripedLink::fail(const std::string& why) noexcept {
  if (failed_) return;
  failed_ = true;
  try {
    error_ = why;
  } catch (const std::exception&) {
  }
  for (const auto& path : paths_)
    if (path->state == Path::State::kUp || path->state == Path::State::kReviving) path->queue().stop();
}

}  // namespace tutti::verbs
