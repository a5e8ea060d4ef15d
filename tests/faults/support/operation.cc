#include "faults/support/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <utility>

namespace tutti::faults {
namespace {

constexpr const char* kNames[kKinds] = {
    "all-reduce",   "all-gather",       "reduce-scatter", "broadcast", "reduce",    "gather",  "scatter", "all-to-all",
    "all-gather-v", "reduce-scatter-v", "all-to-all-v",   "gather-v",  "scatter-v", "barrier", "message", "messages"};
constexpr std::byte kPoison{0xA5};

bool usesRoot(Kind kind) noexcept { return hasRoot(kind) || kind == Kind::kMessage; }

}  // namespace

const char* nameOf(Kind kind) noexcept { return kNames[static_cast<int>(kind)]; }

bool reduces(Kind kind) noexcept {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce ||
         kind == Kind::kReduceScatterV;
}

bool hasRoot(Kind kind) noexcept {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kGather || kind == Kind::kScatter ||
         kind == Kind::kGatherV || kind == Kind::kScatterV;
}

std::string Operation::describe() const {
  std::string text = fmt::format("{} of {} x {}", nameOf(kind), count, nameOf(type));
  if (reduces(kind)) text += fmt::format(", {}", nameOfOp(op));
  if (usesRoot(kind)) text += fmt::format(", root {}", root);
  constexpr const char* kAsking[] = {"", ", with a request", ", persistent"};
  if (algorithm) text += fmt::format(", by {}", algorithm);
  if (channels != 0) text += fmt::format(", {} channels", channels);
  if (tag != 0) text += fmt::format(", tag {}", tag);
  text += kAsking[static_cast<int>(asking)];
  return text + (rounds ? ", rounded" : "") + (inPlace ? ", in place" : "");
}

void Block::lay(size_t bytes, size_t skew) {
  start = kMargin + skew;
  memory.assign(start + bytes + kMargin, kPoison);
}

Part::Part(const Operation& operation, int rank, int ranks)
    : operation_(operation),
      rank_(rank),
      ranks_(ranks),
      width_(sizeOf(operation.type)),
      reduction_(operation.type, operation.op, ranks, operation.salt),
      rounding_(operation.type, operation.op, ranks, operation.salt) {
  lay();
}

Part::~Part() {
  for (const tuttiRequest_t request : requests_) tuttiRequestFree(request);
}

void Part::lay() {
  switch (operation_.kind) {
    case Kind::kBarrier:
      return;
    case Kind::kAllReduce:
    case Kind::kReduce:
    case Kind::kReduceScatter:
      return layReduction();
    case Kind::kReduceScatterV:
      return layReduceScatterV();
    case Kind::kAllGatherV:
      return layAllGatherV();
    case Kind::kAllToAllV:
      return layAllToAllV();
    case Kind::kGatherV:
      return layGatherV();
    case Kind::kScatterV:
      return layScatterV();
    case Kind::kMessage:
    case Kind::kMessages:
      return layMessages();
    default:
      return layMoves();
  }
}

// Sent and received elements, in one block (the smaller one at element `within` of the larger) or in two. Every third
// operation's buffers begin at any byte.
void Part::place(size_t sendElements, size_t recvElements, bool shared, size_t within) {
  const uint64_t bits = mix(operation_.salt, 77, static_cast<uint64_t>(rank_));
  const auto skew = [&](int shift) { return bits % 3 == 0 ? bits >> shift & 31 : 0; };
  shared_ = shared;
  recvBlock_.lay((shared ? std::max(sendElements, recvElements) : recvElements) * width_, skew(8));
  send_ = recv_ = recvBlock_.data();
  if (shared) {
    (sendElements < recvElements ? send_ : recv_) += within * width_;
    return;
  }
  sendBlock_.lay(sendElements * width_, skew(16));
  send_ = sendBlock_.data();
}

void Part::seal() {
  sendImage_.assign(sendBlock_.memory.begin(), sendBlock_.memory.end());
  recvImage_.assign(recvBlock_.memory.begin(), recvBlock_.memory.end());
}

std::byte* Part::want(size_t element) noexcept {
  return recvImage_.data() + (recv_ - recvBlock_.memory.data()) + element * width_;
}

void Part::raw(std::byte* to, int from, int dest, size_t count, int number) const {
  const uint64_t ends = static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(dest);
  fillRaw(to, mix(operation_.salt, ends, static_cast<uint64_t>(number)), count * width_);
}

size_t Part::drawCount(int from, int to, int number) const {
  const uint64_t ends = static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to);
  return mix(operation_.salt ^ 0xc0, ends, static_cast<uint64_t>(number)) % (operation_.count + 1);
}

void Part::layReduction() {
  const size_t count = operation_.count, rank = static_cast<size_t>(rank_);
  const bool scatters = operation_.kind == Kind::kReduceScatter;
  const bool receives = operation_.kind != Kind::kReduce || rank_ == operation_.root;
  const size_t sends = scatters ? count * static_cast<size_t>(ranks_) : count;
  place(sends, count, operation_.inPlace && receives, scatters ? rank * count : 0);
  contribute(sends);
  seal();
  if (receives) expectReduced(scatters ? rank * count : 0, count);
}

void Part::contribute(size_t count) {
  if (operation_.rounds)
    rounding_.contribute(give(0), rank_, 0, count);
  else
    reduction_.contribute(give(0), rank_, 0, count);
}

// Elements `first` and following of the whole.
void Part::expectReduced(size_t first, size_t count) {
  reducedFirst_ = first;
  reducedCount_ = count;
  if (!operation_.rounds) reduction_.combine(want(0), first, count);
}

void Part::layMoves() {
  const size_t count = operation_.count, n = static_cast<size_t>(ranks_), rank = static_cast<size_t>(rank_);
  const Kind kind = operation_.kind;
  const bool isRoot = rank_ == operation_.root;
  const bool gathers = kind == Kind::kAllGather || kind == Kind::kGather;
  const bool splits = kind == Kind::kScatter || kind == Kind::kAllToAll;
  const bool sends = isRoot || (kind != Kind::kBroadcast && kind != Kind::kScatter);
  const bool receives = isRoot || kind != Kind::kGather;
  const bool wide = gathers || kind == Kind::kAllToAll;
  const bool shares = kind == Kind::kAllToAll ? exchangesInPlace() : operation_.inPlace && sends && receives;
  place(!sends   ? 0
        : splits ? n * count
                 : count,
        !receives ? 0
        : wide    ? n * count
                  : count,
        shares, gathers || kind == Kind::kScatter ? rank * count : 0);
  if (sends && splits)
    for (size_t to = 0; to < n; ++to) raw(give(to * count), rank_, static_cast<int>(to), count);
  else if (sends)
    raw(give(0), rank_, -1, count);
  seal();
  if (!receives) return;
  if (kind == Kind::kBroadcast) return raw(want(0), operation_.root, -1, count);
  if (kind == Kind::kScatter) return raw(want(0), operation_.root, rank_, count);
  for (size_t from = 0; from < n; ++from) raw(want(from * count), static_cast<int>(from), gathers ? -1 : rank_, count);
}

// On all ranks, or on some.
bool Part::exchangesInPlace() const noexcept {
  return operation_.inPlace && (operation_.salt % 2 == 0 || mix(operation_.salt, 7, static_cast<uint64_t>(rank_)) % 2);
}

// A part for each rank, with gaps. Returns where the last one ends.
size_t Part::drawParts() {
  size_t end = 0;
  for (int r = 0; r < ranks_; ++r) {
    end += mix(operation_.salt, 3, static_cast<uint64_t>(r)) % 5;
    counts_.push_back(drawCount(r, -1));
    offsets_.push_back(end);
    end += counts_.back();
  }
  return end;
}

void Part::layAllGatherV() {
  const size_t end = drawParts();
  const auto rank = static_cast<size_t>(rank_);
  place(counts_[rank], end, operation_.inPlace, offsets_[rank]);
  raw(give(0), rank_, -1, counts_[rank]);
  seal();
  for (int r = 0; r < ranks_; ++r) raw(want(offsets_[size_t(r)]), r, -1, counts_[size_t(r)]);
}

void Part::layGatherV() {
  const size_t end = drawParts();
  const auto rank = static_cast<size_t>(rank_);
  const bool isRoot = rank_ == operation_.root;
  place(counts_[rank], isRoot ? end : 0, operation_.inPlace && isRoot, offsets_[rank]);
  raw(give(0), rank_, -1, counts_[rank]);
  seal();
  if (!isRoot) return;
  for (int r = 0; r < ranks_; ++r) raw(want(offsets_[size_t(r)]), r, -1, counts_[size_t(r)]);
}

void Part::layScatterV() {
  const size_t end = drawParts();
  const auto rank = static_cast<size_t>(rank_);
  const bool isRoot = rank_ == operation_.root;
  place(isRoot ? end : 0, counts_[rank], operation_.inPlace && isRoot, offsets_[rank]);
  for (int r = 0; isRoot && r < ranks_; ++r) raw(give(offsets_[size_t(r)]), rank_, r, counts_[size_t(r)]);
  seal();
  raw(want(0), operation_.root, rank_, counts_[rank]);
}

void Part::layReduceScatterV() {
  for (int r = 0; r < ranks_; ++r) counts_.push_back(drawCount(r, -1));
  const auto rank = static_cast<size_t>(rank_);
  const size_t whole = std::accumulate(counts_.begin(), counts_.end(), size_t{0});
  const size_t before = std::accumulate(counts_.begin(), counts_.begin() + rank_, size_t{0});
  place(whole, counts_[rank], operation_.inPlace, before);
  contribute(whole);
  seal();
  expectReduced(before, counts_[rank]);
}

void Part::layAllToAllV() {
  size_t sends = 0, receives = 0;
  for (int r = 0; r < ranks_; ++r) {
    const bool even = operation_.inPlace;  // then any rank may be in place: what goes and what comes is as much
    sends += mix(operation_.salt, 4, static_cast<uint64_t>(rank_ * 64 + r)) % 5;
    receives += mix(operation_.salt, even ? 4 : 5, static_cast<uint64_t>(rank_ * 64 + r)) % 5;
    counts_.push_back(even ? drawCount(std::min(rank_, r), std::max(rank_, r)) : drawCount(rank_, r));
    recvCounts_.push_back(even ? counts_.back() : drawCount(r, rank_));
    offsets_.push_back(sends);
    recvOffsets_.push_back(receives);
    sends += counts_.back();
    receives += recvCounts_.back();
  }
  place(sends, receives, exchangesInPlace(), 0);
  for (int r = 0; r < ranks_; ++r) raw(give(offsets_[size_t(r)]), rank_, r, counts_[size_t(r)]);
  seal();
  for (int r = 0; r < ranks_; ++r) raw(want(recvOffsets_[size_t(r)]), r, rank_, recvCounts_[size_t(r)]);
}

// How far from the sender of kMessage its receiver is.
int Part::messageStep() const {
  return ranks_ == 1 ? 0 : 1 + static_cast<int>(operation_.salt % static_cast<uint64_t>(ranks_ - 1));
}

// Up to two messages for each pair of ranks, oneself included; or the one of kMessage.
void Part::layMessages() {
  const auto messages = [&](int from, int to) {
    if (operation_.kind == Kind::kMessage)
      return int{from == operation_.root && to == (from + messageStep()) % ranks_ && from != to};
    return static_cast<int>(mix(operation_.salt, 6, static_cast<uint64_t>(from * 64 + to)) % 3);
  };
  size_t sends = 0, receives = 0;
  for (int peer = 0; peer < ranks_; ++peer) {
    for (int i = 0; i < messages(rank_, peer); ++i) {
      transfers_.push_back({peer, true, sends, drawCount(rank_, peer, i)});
      sends += transfers_.back().count;
    }
    for (int i = 0; i < messages(peer, rank_); ++i) {
      transfers_.push_back({peer, false, receives, drawCount(peer, rank_, i)});
      receives += transfers_.back().count;
    }
  }
  place(sends, receives, false, 0);
  std::vector<int> numbers(static_cast<size_t>(ranks_));
  for (const Transfer& t : transfers_)
    if (t.sends) raw(give(t.offset), rank_, t.peer, t.count, numbers[size_t(t.peer)]++);
  seal();
  numbers.assign(numbers.size(), 0);
  for (const Transfer& t : transfers_)
    if (!t.sends) raw(want(t.offset), t.peer, rank_, t.count, numbers[size_t(t.peer)]++);
}

tuttiResult_t Part::issue(tuttiComm_t comm, tuttiStream_t stream) {
  if (operation_.kind == Kind::kMessage || operation_.kind == Kind::kMessages) return issueMessages(comm, stream);
  return reduces(operation_.kind) ? issueReduction(comm, stream) : made(issueOne(comm, stream));
}

const tuttiCallConfig_t* Part::configure() {
  if (!operation_.configured()) return nullptr;
  const bool collective = operation_.kind < Kind::kMessage;
  config_.algorithm = operation_.algorithm;
  config_.channels = collective ? operation_.channels : 0;
  config_.tag = operation_.tag;
  config_.request = operation_.asking == Asking::kNothing ? nullptr : &request_;
  config_.flags = operation_.asking == Asking::kPersistent ? TUTTI_CALL_PERSISTENT : 0;
  return &config_;
}

// Every other request is freed at once, when the operation may still run.
tuttiResult_t Part::made(tuttiResult_t result) {
  const tuttiRequest_t request = std::exchange(request_, nullptr);
  if (result != tuttiSuccess || request == nullptr) return result;
  if (operation_.asking == Asking::kPersistent) result = tuttiRequestStart(request);
  if (operation_.salt % 2 == 0) return tuttiRequestFree(request), result;
  requests_.push_back(request);
  return result;
}

tuttiResult_t Part::issueOne(tuttiComm_t comm, tuttiStream_t stream) {
  const tuttiCallConfig_t* const config = configure();
  const tuttiDataType_t type = operation_.type;
  const size_t count = operation_.count;
  switch (operation_.kind) {
    case Kind::kAllGather:
      return tuttiAllGatherConfig(send_, recv_, count, type, comm, stream, config);
    case Kind::kBroadcast:
      return tuttiBroadcastConfig(send_, recv_, count, type, operation_.root, comm, stream, config);
    case Kind::kGather:
      return tuttiGatherConfig(send_, recv_, count, type, operation_.root, comm, stream, config);
    case Kind::kScatter:
      return tuttiScatterConfig(send_, recv_, count, type, operation_.root, comm, stream, config);
    case Kind::kAllToAll:
      return tuttiAllToAllConfig(send_, recv_, count, type, comm, stream, config);
    case Kind::kAllGatherV:
    case Kind::kAllToAllV:
    case Kind::kGatherV:
    case Kind::kScatterV:
      return issueVariant(comm, stream, config);
    case Kind::kBarrier:
      return tuttiBarrierConfig(comm, stream, config);
    default:
      return tuttiInternalError;
  }
}

// Only the root has tables of a gather-v and a scatter-v.
tuttiResult_t Part::issueVariant(tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config) {
  const tuttiDataType_t type = operation_.type;
  const bool isRoot = rank_ == operation_.root;
  const size_t own = counts_[static_cast<size_t>(rank_)];
  const size_t *const counts = counts_.data(), *const offsets = offsets_.data();
  switch (operation_.kind) {
    case Kind::kAllGatherV:
      return tuttiAllGatherVConfig(send_, recv_, counts, offsets, type, comm, stream, config);
    case Kind::kGatherV:
      return tuttiGatherVConfig(send_, own, recv_, isRoot ? counts : nullptr, isRoot ? offsets : nullptr, type,
                                operation_.root, comm, stream, config);
    case Kind::kScatterV:
      return tuttiScatterVConfig(send_, isRoot ? counts : nullptr, isRoot ? offsets : nullptr, recv_, own, type,
                                 operation_.root, comm, stream, config);
    default:
      return tuttiAllToAllVConfig(send_, counts, offsets, recv_, recvCounts_.data(), recvOffsets_.data(), type, comm,
                                  stream, config);
  }
}

tuttiResult_t Part::issueReduction(tuttiComm_t comm, tuttiStream_t stream) {
  auto op = static_cast<tuttiRedOp_t>(operation_.op);
  if (operation_.op == kPreMulSum) {
    std::byte scalar[8];
    if (operation_.rounds)
      rounding_.factor(scalar, rank_);
    else
      reduction_.factor(scalar, rank_);
    const auto made = tuttiRedOpCreatePreMulSum(&op, scalar, operation_.type, tuttiScalarHostImmediate, comm);
    if (made != tuttiSuccess) return made;
  }
  const tuttiDataType_t type = operation_.type;
  const tuttiCallConfig_t* const config = configure();
  tuttiResult_t result = tuttiInternalError;
  if (operation_.kind == Kind::kAllReduce)
    result = tuttiAllReduceConfig(send_, recv_, operation_.count, type, op, comm, stream, config);
  else if (operation_.kind == Kind::kReduce)
    result = tuttiReduceConfig(send_, recv_, operation_.count, type, op, operation_.root, comm, stream, config);
  else if (operation_.kind == Kind::kReduceScatter)
    result = tuttiReduceScatterConfig(send_, recv_, operation_.count, type, op, comm, stream, config);
  else
    result = tuttiReduceScatterVConfig(send_, recv_, counts_.data(), type, op, comm, stream, config);
  result = made(result);
  if (operation_.op == kPreMulSum) tuttiRedOpDestroy(op, comm);
  return result;
}

// In a group, in an order of each rank's own; messages of one pair and direction keep theirs.
tuttiResult_t Part::issueMessages(tuttiComm_t comm, tuttiStream_t stream) {
  std::vector<const Transfer*> order;
  for (const Transfer& t : transfers_) order.push_back(&t);
  std::mt19937_64 random(mix(operation_.salt, 8, static_cast<uint64_t>(rank_)));
  std::vector<uint64_t> peerKeys(static_cast<size_t>(2 * ranks_));
  for (uint64_t& key : peerKeys) key = random();
  const auto keyOf = [&](const Transfer* t) { return peerKeys[static_cast<size_t>(2 * t->peer + t->sends)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return keyOf(a) < keyOf(b); });
  const bool grouped = operation_.kind == Kind::kMessages;
  tuttiResult_t result = grouped ? tuttiGroupStart() : tuttiSuccess;
  for (const Transfer* t : order) {
    const tuttiCallConfig_t* const config = configure();
    const size_t at = t->offset * width_;
    const auto one =
        made(t->sends ? tuttiSendConfig(send_ + at, t->count, operation_.type, t->peer, comm, stream, config)
                      : tuttiRecvConfig(recv_ + at, t->count, operation_.type, t->peer, comm, stream, config));
    if (result == tuttiSuccess) result = one;
  }
  const tuttiResult_t ended = grouped ? tuttiGroupEnd() : tuttiSuccess;
  return result == tuttiSuccess ? ended : result;
}

std::string Part::compare(Block& block, const std::vector<std::byte>& image, const char* name) const {
  if (image.empty() || std::memcmp(block.memory.data(), image.data(), image.size()) == 0) return "";
  const auto start = static_cast<ptrdiff_t>(block.start);
  const size_t end = image.size() - Block::kMargin;
  for (size_t i = 0; i < block.start; ++i)
    if (block.memory[i] != image[i])
      return fmt::format("{}: byte {} before the buffer was written", name, start - static_cast<ptrdiff_t>(i));
  for (size_t i = block.start; i + width_ <= end; i += width_)
    if (!sameElement(&block.memory[i], &image[i], operation_.type))
      return fmt::format("{}: element {}: expected {}, got {}", name, (i - block.start) / width_,
                         spell(&image[i], operation_.type).text, spell(&block.memory[i], operation_.type).text);
  for (size_t i = end; i < image.size(); ++i)
    if (block.memory[i] != image[i]) return fmt::format("{}: byte {} behind the buffer was written", name, i - end);
  return "";
}

uint64_t Part::digest() const noexcept {
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a's
  for (const std::byte byte : std::span(recv_, operation_.count * width_))
    digest = (digest ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return digest;
}

std::string Part::check() {
  for (const tuttiRequest_t request : requests_)
    if (const tuttiResult_t result = tuttiRequestTest(request); result != tuttiSuccess)
      return fmt::format("its request says {}: {}", tuttiGetErrorString(result), tuttiGetLastError(nullptr));
  if (operation_.rounds) {
    if (std::string wrong = rounding_.judge(recv_, reducedFirst_, reducedCount_); !wrong.empty()) return wrong;
    std::copy_n(recv_, reducedCount_ * width_, want(0));  // what is around it must not change
  }
  if (std::string wrong = compare(sendBlock_, sendImage_, "send buffer"); !wrong.empty()) return wrong;
  return compare(recvBlock_, recvImage_, "receive buffer");
}

}  // namespace tutti::faults
