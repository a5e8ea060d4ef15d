#include "join/joining.h"

#include <algorithm>
#include <utility>

#include "base/deadline_names.h"
#include "job/remedies.h"
#include "join/last_call.h"
#include "join/open_root.h"
#include "join/root.h"
#include "join/root_call.h"
#include "join/used_jobs.h"
#include "process/descriptors.h"

namespace tutti::control {
namespace {

// How long to wait, beyond the own deadline or after the tree broke, for the root's word on who is to blame.
constexpr std::chrono::milliseconds kPatience(500);
// How long a rank 0 whose place is taken waits for a root there to say that there are two of them.
constexpr std::chrono::milliseconds kOthersWord(5000);

}  // namespace

void Joining::start() {
  // Of a communicator that stands, the root has gone: nobody would answer.
  if (UsedJobs::instance().contains(request_.id.job) && request_.id.place.empty())
    return fail(ErrorCode::kInvalidUsage,
                "a communicator has been made with this unique id already, and it is good for one: call "
                "tuttiGetUniqueId, or to grow tuttiCommGetUniqueId, again, and hand the new one to all ranks");
  const auto left = request_.deadline.left();
  deadline_ = reactor_.after(isTaken() ? std::min<Reactor::Clock::duration>(left, kOthersWord) : left,
                             [this] { onDeadline(); });
  callRoot();
}

void Joining::callRoot() {
  dial_ = Dial::start(
      reactor_, targetOfRoot(request_), [this](std::shared_ptr<Line> line) { onRoot(std::move(line)); },
      [this](const std::string& why) {
        if (isTaken()) return fail(ErrorCode::kSystem, request_.id.taken);
        if (const std::string left = whoLeft(why); !left.empty()) return fail(ErrorCode::kRemote, left);
        lastRefusal_ = dial_->unproven() ? "" : why;
        if (dial_->unproven()) unproven_ = why;
        if (dial_->starved()) starve(fmt::format("no connection to {} ({})", placed_ ? calling_ : "the root", why));
      },
      pause_);
}

// That of an id that was handed over is of no earlier job, and does not come again; nor has anybody else its name.
std::string Joining::whoLeft(const std::string& why) const {
  if (placed_ || !request_.id.place.empty()) return {};
  if (!lostRoot_.empty()) return dial_->refused() ? lostRoot_ : "";
  if (!dial_->left()) return {};
  return fmt::format("the root of the job hung up while this rank called it, and nobody is there now ({}). {}", why,
                     whenNobodyIsThere(request_.id));
}

void Joining::onRoot(std::shared_ptr<Line> line) {
  dial_.reset();
  root_ = std::move(line);
  try {
    Line::Events events;
    events.frame = [this](Frame& frame) { onRootFrame(frame); };
    events.closed = [this](const std::string& why) { onRootGone(why); };
    root_->setEvents(std::move(events));
    root_->send(Kind::kHello, encode(helloOf(request_, self_, *root_)));
  } catch (const std::exception&) {  // no memory: whose line it is the root does not know, and would not listen
    std::exchange(root_, nullptr)->close();
    throw;
  }
  heartbeat_.watch(root_,
                   [this](const std::string& how) { fail(ErrorCode::kRemote, rootProcess(request_.id) + " " + how); });
}

void Joining::onRootFrame(Frame& frame) try {
  if (over_) return;
  if (static_cast<Kind>(frame.type) == Kind::kRefuse) {
    const Refusal refusal = decodeRefusal(frame.payload);
    const bool silent = refusal.code == ErrorCode::kTimeout;
    return fail(refusal.code, silent ? refusal.text + events_.missing() : refusal.text);
  }
  if (static_cast<Kind>(frame.type) == Kind::kDigest) return onDigest(frame.payload);
  if (static_cast<Kind>(frame.type) != Kind::kPlace || placed_) return;
  if (isTaken()) return;  // anybody may sit there: nothing is taken from it but that it refuses
  placed_ = true;
  const Place place = decodePlace(frame.payload);
  draw_ = place.draw;
  if (isPublic(request_.id)) learn(place.secret);
  if (place.parent)
    callParent(*place.parent);
  else
    events_.placed(nullptr, {});
} catch (const Error& e) {
  fail(e.code(), fmt::format("the root said what cannot be read: {}", e.what()));
}

// Before it has placed this rank, a root that goes away was that of an earlier job at the same address. When all have
// come, the tree does without it; in between it is missed.
void Joining::onRootGone(const std::string& why) {
  const std::string peer = std::exchange(root_, nullptr)->peer();
  if (over_ || allCame_) return;
  lostRoot_ = fmt::format(
      "the root of the job, at {}, left while the ranks were joining: {}. "
      "Look for why that process ended",
      peer, why);
  if (placed_) return fail(ErrorCode::kRemote, lostRoot_);
  lastRefusal_ = why;
  pause_ = Dial::longer(pause_);
  callRoot();
}

void Joining::onDigest(const Bytes& payload) {
  Digest digest;
  if (payload.size() != digest.size()) throw Error(ErrorCode::kRemote, "a digest of the wrong length");
  std::copy(payload.begin(), payload.end(), digest.begin());
  allCame_ = true;
  events_.digest(digest);
}

void Joining::learn(std::span<const std::byte> wrapped) {
  const Bytes told = root_->unwrap(wrapped);
  Secret secret{};
  if (told.size() != secret.size()) throw Error(ErrorCode::kRemote, "a secret of the wrong length");
  std::copy(told.begin(), told.end(), secret.begin());
  events_.learned(secret);
}

void Joining::callParent(const RankAddress& parent) {
  calling_ = "its parent in the tree, " + describe(parent);
  lastRefusal_.clear();
  dial_ = Dial::start(
      reactor_,
      {memberContext(request_, key_, parent.endpoint), ifAllowed(request_.network, unixNamesOf(parent.endpoint)),
       parent.endpoint.addresses},
      [this, parent](std::shared_ptr<Line> line) {
        dial_.reset();
        events_.placed(std::move(line), parent);
      },
      [this](const std::string& why) {
        // While the root is there, it knows more of it.
        if (!root_ && dial_->refused())
          return fail(ErrorCode::kRemote,
                      fmt::format("{}, has ended while the ranks were joining ({})", calling_, why));
        lastRefusal_ = why;
        if (dial_->starved()) starve(fmt::format("no connection to {} ({})", placed_ ? calling_ : "the root", why));
      });
}

void Joining::starve(const std::string& why) {
  fail(ErrorCode::kSystem, fmt::format("rank {} of {} could not join: {}", request_.rank, request_.size, why));
}

void Joining::treeBroke(const std::string& why) {
  if (over_ || patience_ != 0) return;
  if (!root_) return fail(ErrorCode::kRemote, why);
  patience_ = reactor_.after(kPatience, [this, why] { fail(ErrorCode::kRemote, why); });
}

std::string Joining::obstacle() const {
  std::string last = lastRefusal_.empty() ? dial_->soFar() : lastRefusal_;
  if (last.empty()) last = "no answer";
  if (placed_) return fmt::format("no connection to {} ({})", calling_, last);
  std::string nobody = fmt::format("no connection to the root ({}). {}", last, whenNobodyIsThere(request_.id));
  // Who has no descriptor left hangs up on its callers, which looks alike from their side.
  if (unproven_.empty() || !lackOfDescriptors("").empty()) return nobody;
  const std::string other = fmt::format("{} ({}): {}{}", whatDiffers(request_.id), unproven_,
                                        seeWhoListens(request_.id), whenTheSecretDiffers(request_.id));
  return lastRefusal_.empty() ? other : other + ". After that, " + nobody;
}

void Joining::onDeadline() {
  const auto text = [this] {
    std::string what = fmt::format("rank {} of {} could not join before its deadline, {}", request_.rank, request_.size,
                                   kJoinDeadline);
    if (dial_) what += ": " + obstacle();
    return what + events_.missing();
  };
  if (isTaken()) return fail(ErrorCode::kSystem, request_.id.taken);
  if (!root_) return fail(ErrorCode::kTimeout, text());
  deadline_ = reactor_.after(kPatience, [this, text] { fail(ErrorCode::kTimeout, text()); });
}

void Joining::succeed() {
  stop();
  UsedJobs::instance().note(request_.id.job);
  if (root_) tell(Kind::kDone, [] { return Bytes{}; });
}

void Joining::fail(ErrorCode code, const std::string& text) {
  if (over_) return;
  stop();
  // The others have deadlines of their own.
  if (isUnheard() && code != ErrorCode::kTimeout) tellRoot(request_, [&] { return text; });
  end(code, text);
}

void Joining::giveUp(ErrorCode code, const std::string& text) {
  if (over_) return;
  stop();
  if (isUnheard()) tellRootHere(request_.id.job, request_.rank, request_.size, [&] { return text; });
  end(code, text);
}

void Joining::tellUnbegun(const std::string& why) noexcept {
  if (!over_ && isUnheard()) tellRoot(request_, [&] { return why; });
}

void Joining::end(ErrorCode code, const std::string& text) {
  if (root_) tell(Kind::kRefuse, [&] { return encode(Refusal{code, text}); });
  events_.failed(code, text);
}

// Without memory to say so, the root sees that this rank has gone.
void Joining::tell(Kind kind, const std::function<Bytes()>& last) noexcept try {
  root_->send(kind, last());
  root_->finish();
} catch (const std::exception&) {
  root_->close();
}

void Joining::stop() noexcept {
  over_ = true;
  if (dial_) dial_->cancel();
  dial_.reset();
  reactor_.cancel(deadline_);
  reactor_.cancel(patience_);
}

void Joining::cut() noexcept {
  stop();
  if (root_) root_->close();
}

}  // namespace tutti::control
