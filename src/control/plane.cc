#include "control/plane.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "control/control_node.h"
#include "job/invitation.h"
#include "job/ranks.h"
#include "join/last_call.h"
#include "join/root.h"
#include "join/tree.h"
#include "process/log.h"

namespace tutti::control {
namespace {

class TreePlane : public Plane {
 public:
  // Made before there is anything to own: what has begun to join must not lack an owner who leaves.
  TreePlane() = default;
  ~TreePlane() override { leave(); }
  void own(std::shared_ptr<ControlNode> node) noexcept {
    node_ = std::move(node);
    left_ = false;
  }
  void leave() noexcept override {
    if (std::exchange(left_, true)) return;
    try {
      node_->leave();
    } catch (const std::exception& e) {  // only for lack of memory
      log::warn("rank {} could not leave in good order: {}", rank(), e.what());
    }
  }

  bool awaitJoined(Deadline until) override { return node_->mailbox().awaitJoined(until); }
  uint64_t id() const noexcept override { return node_->id(); }
  int rank() const noexcept override { return node_->rank(); }
  int size() const noexcept override { return node_->size(); }
  std::span<const std::byte> info(int rank) const override { return node_->info(rank); }
  bool isHere(int rank) const override { return node_->isHere(rank); }
  std::vector<Bytes> allGather(std::span<const std::byte> mine, Deadline deadline) override {
    // A table of ranks that had all begun before they knew of the failure would still come: none is begun after it.
    if (const auto known = failure()) throw Error(known->code, known->text);
    const uint64_t sequence = ++sequence_;
    node_->mailbox().expectTable(sequence);
    node_->startGather(sequence, mine);
    return node_->mailbox().awaitTable(sequence, deadline);
  }
  void post(int to, uint64_t key, std::span<const std::byte> message) override { node_->post(to, key, message); }
  std::optional<Bytes> poll(int from, uint64_t key) override { return node_->mailbox().poll(from, key); }
  void requestStream(int peer, uint64_t key, StreamKind kind) override { node_->requestStream(peer, key, kind); }
  std::optional<SecureSocket> pollStream(int peer, uint64_t key) override {
    return node_->mailbox().pollStream(peer, key);
  }
  void whenNews(std::function<void()> news) override { node_->mailbox().whenNews(std::move(news)); }
  void ask(int rank, std::span<const std::byte> question) override { node_->ask(rank, question); }
  std::optional<Answer> lastAnswer(int rank) const override { return node_->mailbox().lastAnswer(rank); }
  std::vector<int> wayTo(int to) const override { return tree::between(rank(), to); }
  const std::atomic<bool>& failed() const noexcept override { return node_->mailbox().failed(); }
  std::optional<Failure> failure() const override { return node_->mailbox().failure(); }
  void fail(const Failure& failure) noexcept override { node_->fail(failure); }
  std::shared_ptr<Plane> shrink(const JoinRequest& like, std::span<const int> leftOut,
                                const std::function<bool()>& cancelled) override {
    auto plane = std::make_shared<TreePlane>();
    plane->own(node_->shrink(like, leftOut, cancelled));
    return plane;
  }
  ChildRoot openChildRoot(const Network& network, Deadline lifetime, std::span<const int> members) override {
    RootPlace place = anyRootPlace();
    const Secret drawn = place.id.secret;
    place.id = node_->childId(place.id);
    const auto keys = keysOf(members);
    const auto root = std::make_shared<Root>(place, network, lifetime);
    ChildRoot opened{invite(root->id(), drawn, keys, node_->key()), root->id().job};
    start(root);
    return opened;
  }
  UniqueId childId(std::span<const std::byte> told, int leader, size_t place) const override {
    return node_->childId(invitationOf(told, place, node_->who(leader).endpoint.key, node_->key()));
  }
  Bytes sealId(const UniqueId& id) const override {
    std::vector<int> all(static_cast<size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    return invite(id, id.secret, keysOf(all), node_->key());
  }
  // Whoever could come between these ranks could read it as well.
  UniqueId openId(std::span<const std::byte> told, int from) const override {
    UniqueId id = invitationOf(told, static_cast<size_t>(rank()), node_->who(from).endpoint.key, node_->key());
    id.exposed = node_->isExposedToOthers();
    return id;
  }

 private:
  std::vector<noise::Key> keysOf(std::span<const int> ranks) const {
    std::vector<noise::Key> keys;
    for (const int rank : ranks) keys.push_back(node_->who(rank).endpoint.key);
    return keys;
  }

  std::shared_ptr<ControlNode> node_;
  uint64_t sequence_ = 0;
  bool left_ = true;
};

}  // namespace

std::shared_ptr<Plane> Plane::begin(const JoinRequest& request) {
  if (const auto wrong = wrongPlace(request.rank, request.size))
    throw Error(ErrorCode::kInvalidArgument, fmt::format("rank {} of {}: {}", request.rank, request.size, *wrong));
  try {
    auto plane = std::make_shared<TreePlane>();
    auto node = std::make_shared<ControlNode>(request);
    BackgroundThreads::instance().start(node);
    plane->own(std::move(node));
    return plane;
  } catch (const std::exception& error) {
    tellRoot(request,
             [&] { return fmt::format("rank {} of {} could not join: {}", request.rank, request.size, error.what()); });
    throw;
  }
}

}  // namespace tutti::control
