// One rank of a job whose root and other ranks are in the hands of the input, which may let it join in good order.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "control/control_node.h"
#include "fuzz/hostile.h"
#include "join/root.h"
#include "join/tree.h"

namespace tutti::fuzz {

class World {
 public:
  // How far the rank is let come before the input takes over.
  enum class Stage : uint8_t { kCalled, kPlaced, kHasChildren, kJoined };

  // `draws`: the id has no secret, which the root draws and hands over.
  World(int rank, int size, bool draws = false)
      : size_(size),
        draws_(draws),
        rootDoor_(control::rootUnixName(job_)),
        node_(std::make_shared<control::ControlNode>(request(rank))) {
    for (int r = 0; r < size; ++r) {
      doors_.push_back(std::make_unique<Door>(nameOf(job_, r)));
      control::RankAddress who{r, "n" + std::to_string(r), 1000 + r, {}};
      who.endpoint.id = static_cast<uint64_t>(100 + r);
      who.endpoint.key = keyPairs()[static_cast<size_t>(r)].open;
      who.endpoint.unixName = doors_.back()->name();
      people_.push_back(who);
    }
    running_.emplace(*node_);
  }

  control::ControlNode& member() noexcept { return *node_; }
  Running& running() noexcept { return *running_; }
  int rank() const noexcept { return node_->rank(); }
  int size() const noexcept { return size_; }
  uint64_t job() const noexcept { return job_; }
  const control::RankAddress& who(int rank) const { return people_[static_cast<size_t>(rank)]; }
  static const noise::KeyPair& keyOf(int rank) { return keyPairs()[static_cast<size_t>(rank)]; }
  std::vector<Hostile>& lines() noexcept { return lines_; }

  // Whether the rank's listener takes calls: not before it has the secret.
  bool listens() const noexcept { return !draws_ || placed_; }
  // A new call to the rank's listener, of that rank.
  Hostile call(int from) {
    HandshakeContext context = contextOf(rank());
    context.own = keyOf(from);
    context.peer = people_[static_cast<size_t>(rank())].endpoint.key;
    return Hostile::call(people_[static_cast<size_t>(rank())].endpoint.unixName, context);
  }
  // Who has called that rank.
  std::optional<Hostile> answer(int at, Deadline deadline) {
    HandshakeContext context = contextOf(at);
    context.own = keyOf(at);
    return doors_[static_cast<size_t>(at)]->open(context, deadline);
  }

  // What that rank gives to the table.
  Bytes record(int rank, uint8_t lie = 0) const {
    control::Record record{who(rank), {}};
    if (rank != 0 && rank != node_->rank()) record.who.rank += lie;
    return encode(record);
  }
  // A child's share in the joining, with that record.
  void giveShare(int child, const Bytes& record) {
    const Bytes entries = Writer().value<int32_t>(child).block(record).take();
    const auto side = static_cast<size_t>(child - control::tree::childOf(rank(), 0));
    lines_[lines_.size() - 2 + side].say(control::Kind::kGatherUp, Writer().value<uint64_t>(0).block(entries).take());
  }
  // As the root that has heard of these records, of all ranks.
  void tellDigest(const std::vector<Bytes>& records) {
    std::vector<control::Digest> digests;
    for (const Bytes& record : records) digests.push_back(control::digestOf(record));
    const control::Digest digest = control::digestOfAll(digests);
    lines_[0].say(control::Kind::kDigest, {digest.begin(), digest.end()});
  }

  // `lie`: not 0, and a record in the table has another rank's number. `early`: what happens when it has its place.
  void letCome(Stage stage, uint8_t lie = 0, const std::function<void()>& early = {}) {
    const auto now = [] { return Deadline::in(test::longWait()); };
    // A call that was given up on the way is followed by another.
    std::optional<Frame> hello;
    for (const auto deadline = now(); !hello;) {
      auto root = rootDoor_.open(control::rootContext(id()), deadline);
      require(root.has_value());
      hello = root->hear(control::Kind::kHello);
      if (hello) lines_.push_back(std::move(*root));
    }
    people_[static_cast<size_t>(rank())] = control::decodeHello(hello->payload).who;
    if (stage >= Stage::kPlaced) place(now());
    if (stage >= Stage::kPlaced && early) early();
    if (stage >= Stage::kHasChildren) sendChildren();
    if (stage >= Stage::kJoined) finishJoining(now(), lie);
  }

  // The rank's thread; the rank itself goes with this.
  void end() {
    for (Hostile& line : lines_) line.part(*running_);
    lines_.clear();
    running_.reset();
  }

 private:
  static const std::array<noise::KeyPair, 8>& keyPairs() {
    static const auto pairs = [] {
      std::array<noise::KeyPair, 8> made;
      for (auto& pair : made) pair = noise::drawKeyPair();
      return made;
    }();
    return pairs;
  }
  static uint64_t nextJob() {
    static std::atomic<uint64_t> last{0};
    return ++last << 32 | static_cast<uint32_t>(::getpid());
  }
  static std::string nameOf(uint64_t job, int rank) {
    return "tutti-fuzz-" + std::to_string(::getpid()) + "-" + std::to_string(job) + "-" + std::to_string(rank);
  }
  static control::Secret secret() {
    control::Secret secret;
    secret.fill(std::byte{0x5a});
    return secret;
  }
  control::UniqueId id() const {
    control::UniqueId id;
    if (!draws_) id.secret = secret();
    id.job = job_;
    return id;
  }
  control::JoinRequest request(int rank) const {
    control::JoinRequest request;
    request.id = id();
    request.rank = rank;
    request.size = size_;
    request.deadline = Deadline::in(test::longWait());
    request.heartbeat = std::chrono::milliseconds(0);
    request.respond = [](std::span<const std::byte> question) { return toBytes(question); };
    return request;
  }
  HandshakeContext contextOf(int listener) const {
    HandshakeContext context{secret(), job_, people_[static_cast<size_t>(listener)].endpoint.id, Encryption::kOff};
    context.named = true;
    return context;
  }

  void place(Deadline deadline) {
    placed_ = true;
    control::Place place{7, draws_ ? lines_[0].wrap(secret()) : Bytes(), {}};
    const int parent = control::tree::parentOf(rank());
    if (parent >= 0) place.parent = who(parent);
    lines_[0].say(control::Kind::kPlace, encode(place));
    if (parent < 0) return;
    auto line = answer(parent, deadline);
    require(line.has_value());
    lines_.push_back(std::move(*line));
  }
  void sendChildren() {
    for (const int side : {0, 1}) {
      const int child = control::tree::childOf(rank(), side);
      lines_.push_back(call(child));
      lines_.back().say(control::Kind::kTree, encode(control::Hello{who(child), size_, 0, 0, {}}));
    }
  }
  void finishJoining(Deadline deadline, uint8_t lie) {
    for (const int side : {0, 1}) {
      const int child = control::tree::childOf(rank(), side);
      giveShare(child, record(child, lie));
    }
    std::vector<Bytes> records;
    Writer table;
    table.value<uint64_t>(0);
    for (int r = 0; r < size_; ++r) table.block(records.emplace_back(record(r, lie)));
    tellDigest(records);
    if (rank() != 0) lines_[1].say(control::Kind::kGatherDown, table.take());
    control::Mailbox& mailbox = node_->mailbox();
    for (; !mailbox.hasJoined() && !running_->over(); running_->rest()) require(!deadline.passed());
    require(mailbox.hasJoined() == (lie == 0));
  }

  uint64_t job_ = nextJob();
  int size_;
  bool draws_, placed_ = false;
  Door rootDoor_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<control::RankAddress> people_;
  std::shared_ptr<control::ControlNode> node_;
  std::optional<Running> running_;
  std::vector<Hostile> lines_;  // the root's, the parent's where there is one, the children's, and more
};

}  // namespace tutti::fuzz
