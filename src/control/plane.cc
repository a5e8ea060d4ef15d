#include "control/plane.h"

#include "base/log.h"
#include "control/member.h"

namespace tutti::control {
namespace {

class TreePlane : public Plane {
 public:
  explicit TreePlane(std::shared_ptr<Member> member) : member_(std::move(member)) {}
  ~TreePlane() override {
    try {
      member_->leave();
    } catch (const std::exception& e) {  // only for lack of memory
      log::warn("rank {} could not leave in good order: {}", rank(), e.what());
    }
  }

  int rank() const noexcept override { return member_->rank(); }
  int size() const noexcept override { return member_->size(); }
  std::span<const std::byte> card(int rank) const override { return member_->card(rank); }
  std::vector<Bytes> allGather(std::span<const std::byte> mine, Deadline deadline) override {
    // A table of ranks that had all begun before they knew of the failure would still come: none is begun after it.
    if (const auto known = failure()) throw Error(ErrorCode::kRemote, known->text);
    const uint64_t sequence = ++sequence_;
    member_->desk().expectTable(sequence);
    member_->startGather(sequence, mine);
    return member_->desk().awaitTable(sequence, deadline);
  }
  void post(int to, uint64_t key, std::span<const std::byte> message) override { member_->post(to, key, message); }
  std::optional<Bytes> poll(int from, uint64_t key) override { return member_->desk().poll(from, key); }
  void requestStream(int peer, uint64_t key, StreamKind kind) override { member_->requestStream(peer, key, kind); }
  std::optional<UniqueFd> pollStream(int peer, uint64_t key) override { return member_->desk().pollStream(peer, key); }
  uint64_t awaitNews(uint64_t seen, Deadline deadline) override { return member_->desk().awaitNews(seen, deadline); }
  const std::atomic<bool>& failed() const noexcept override { return member_->desk().failed(); }
  std::optional<Failure> failure() const override { return member_->desk().failure(); }
  void abort(const std::string& reason) noexcept override {
    try {
      member_->abort(reason);
    } catch (const std::exception& e) {  // only for lack of memory
      log::warn("rank {} could not tell that it aborts: {}", rank(), e.what());
    }
  }

 private:
  std::shared_ptr<Member> member_;
  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<Plane> Plane::join(const JoinRequest& request) {
  if (request.size < 1 || request.rank < 0 || request.rank >= request.size)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("rank {} of {}: ranks go from 0 to size - 1", request.rank, request.size));
  auto member = std::make_shared<Member>(request);
  Keeper::instance().start(member);
  member->desk().awaitJoined();
  return std::make_unique<TreePlane>(std::move(member));
}

}  // namespace tutti::control
