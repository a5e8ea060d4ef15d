#include "join/last_call.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "join/open_root.h"
#include "join/root.h"
#include "join/root_call.h"
#include "net/network.h"
#include "process/log.h"

namespace tutti::control {
namespace {

// A root that is there answers in milliseconds; and the rank's own error waits for this.
constexpr std::chrono::seconds kLastCall(1);

// On the caller's thread, since the process may end as soon as the caller knows that it has failed.
class LastCall {
 public:
  LastCall(const JoinRequest& request, std::string why) : request_(request), why_(std::move(why)) {}
  ~LastCall() {
    if (dial_) dial_->cancel();
  }
  LastCall(const LastCall&) = delete;
  LastCall& operator=(const LastCall&) = delete;

  void make() {
    dial_ = Dial::start(
        reactor_, targetOfRoot(request_), [this](const std::shared_ptr<Line>& line) { say(*line); },
        [this](const std::string&) { onNobody(); });
    reactor_.after(kLastCall, [this] { reactor_.stop(); });
    reactor_.run([this](const std::string&) { reactor_.stop(); });
  }

 private:
  // As a rank that comes and gives up: so the root knows who it is.
  void say(Line& line) {
    const RankAddress self{request_.rank, hostName(), ::getpid(), {}};
    line.send(Kind::kHello, encode(helloOf(request_, self, line)));
    line.send(Kind::kRefuse, encode(Refusal{ErrorCode::kRemote, why_}));
    line.finish([this] { reactor_.stop(); });
  }

  // The root of a unique id is there before anybody has the id: one that is not will not come.
  void onNobody() {
    if (dial_->refused() && request_.id.place.empty()) reactor_.stop();
  }

  const JoinRequest& request_;
  const std::string why_;
  Reactor reactor_;
  std::shared_ptr<Dial> dial_;
};

}  // namespace

void tellRoot(const JoinRequest& request, const std::function<std::string()>& why) noexcept try {
  if (!tellRootHere(request.id.job, request.rank, request.size, why) && !request.led) LastCall(request, why()).make();
} catch (const std::exception& e) {
  log::warn("the other ranks could not be told: {}", e.what());
}

std::string gaveUpJoining(std::string_view who) {
  return fmt::format("{} gave up joining: tuttiCommAbort or tuttiCommRevoke was called there, or its process ends",
                     who);
}

}  // namespace tutti::control
