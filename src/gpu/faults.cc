#include "gpu/faults.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "base/deadline_names.h"
#include "diagnose/stall_detector.h"
#include "team/mismatch.h"

namespace tutti::gpu {
namespace {

// The words of a kernel say whom it waited for last, not that it still does: what has moved so lately may go on. So may
// a stream.
constexpr std::chrono::seconds kStandsStill(2);

// A kernel or a stream that waits can ask nobody why nothing comes. For a call that stands still on the GPU the rank
// that it waits for is asked here, as calls on the host do by themselves: so a rank that has left, or is in another
// call, ends it with an error, and not only its deadline.
class StandingWatch {
 public:
  explicit StandingWatch(comm::Team& team) : team_(team) {}
  // Every millisecond or so, by one thread. `overNetwork`: see StallDetector.
  void look(const std::optional<StandingCall>& now, bool overNetwork) noexcept;

 private:
  bool moved(const std::optional<StandingCall>& now);
  void ask(bool overNetwork);

  comm::Team& team_;
  std::optional<StandingCall> last_;
  std::chrono::steady_clock::time_point since_;
  std::unique_ptr<comm::StallDetector> detector_;  // of last_
  bool told_ = false;
};

bool StandingWatch::moved(const std::optional<StandingCall>& now) {
  const bool same = now && last_ && now->token == last_->token && now->waitingFor == last_->waitingFor &&
                    now->position == last_->position;
  if (same) return false;
  detector_.reset();
  last_ = now;
  since_ = std::chrono::steady_clock::now();
  return true;
}

void StandingWatch::look(const std::optional<StandingCall>& now, bool overNetwork) noexcept {
  if (told_) return;
  try {
    if (!moved(now) && std::chrono::steady_clock::now() - since_ >= kStandsStill) ask(overNetwork);
  } catch (const Error& error) {
    told_ = true;
    team_.fail(error);
  } catch (const std::exception&) {  // no memory: it is tried again
  }
}

void StandingWatch::ask(bool overNetwork) {
  if (!detector_) detector_ = std::make_unique<comm::StallDetector>(team_, last_->call, last_->number, false);
  detector_->look(last_->waitingFor, last_->position, overNetwork,
                  [this] { return team_.rankName(last_->waitingFor); });
}

struct Plain {
  link::Fingerprint mark;
  uint64_t tag;
};

// A kernel knows its call by what goes with the slots, in which the tag is a digest.
Plain withoutTag(const comm::Team& team, const device::Report& report) {
  const uint32_t number = report.mine.operation;
  const comm::Recorder& recorder = team.recorder();
  uint64_t tag = 0;
  if (comm::collectiveOf(report.mine) != Collective::kSendRecv)
    tag = recorder.tagOf(comm::CallLine::kCollective, -1, number).value_or(0);
  else if (report.mine.root != 0)
    for (const comm::CallLine line : {comm::CallLine::kReceive, comm::CallLine::kSend}) {
      const uint64_t one = recorder.tagOf(line, report.peer, number).value_or(0);
      if (comm::tagged(report.mine, one).root == 0) tag = one;
    }
  return {comm::tagged(report.mine, tag), tag};
}

// What a kernel met, in words.
Error explain(const comm::Team& team, const device::Report& report) {
  const auto [mine, tag] = withoutTag(team, report);
  const std::string call = comm::describe(mine, tag);
  const std::string self = team.rankName(team.rank()), peer = team.rankName(report.peer);
  if (report.fault == device::Fault::kMismatch)
    return disagreement(team, mine, tag, report.peer, report.theirs, report.bytes);
  if (report.fault == device::Fault::kBytes)
    return Error(ErrorCode::kInvalidUsage, fmt::format("counts do not match in {}: {} sent {} bytes, {} expected {}",
                                                       call, peer, report.bytes, self, report.expected));
  if (report.fault == device::Fault::kSpot)
    return Error(
        ErrorCode::kRemote,
        fmt::format("{} points {} at {} bytes outside of the buffer that it has shared, in {}: it is damaged, or "
                    "not to be trusted",
                    peer, self, report.bytes, call));
  if (report.fault == device::Fault::kNotWritable)
    return Error(
        ErrorCode::kRemote,
        fmt::format("{} speaks of a buffer that {} has neither mapped nor opened to it, in {}: it is damaged, or "
                    "not to be trusted",
                    peer, self, call));
  return Error(ErrorCode::kTimeout,
               fmt::format("{} did not finish within {} ms, the {} of {}, which waits on its GPU for {}", call,
                           team.config().operationTimeout.count(), kOperationDeadline, self, peer));
}

}  // namespace

GpuFaults stopping(comm::Team& team) {
  const auto standing = std::make_shared<StandingWatch>(team);
  return {[&team](const device::Report& report) { team.fail(explain(team, report)); },
          [&team](int peer, const std::string& text) {
            team.fail(Error(ErrorCode::kRemote, fmt::format("{} was cut off: {}", team.rankName(peer), text)));
          },
          [&team](int peer, const std::string& what) {
            team.fail(Error(ErrorCode::kRemote, fmt::format("{} said of its registered buffers to {} what can not be "
                                                            "({}): it is damaged, or not to be trusted",
                                                            team.rankName(peer), team.rankName(team.rank()), what)));
          },
          [standing](const auto& now, bool overNetwork) { standing->look(now, overNetwork); }};
}

}  // namespace tutti::gpu
