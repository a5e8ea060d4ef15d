#include "sim/ring_form.h"

#include <algorithm>

#include "sim/contention.h"
#include "sim/message.h"

namespace tutti::sim {
namespace {

using schedule::Schedule;
using schedule::Step;

// So many steps in a row that do the same.
struct Phase {
  bool receives = false, sends = false;
  int sources = 1;
  size_t steps = 0;
};

bool hasLink(std::span<const schedule::Operand> operands) {
  return std::ranges::any_of(operands, [](schedule::Operand each) { return each.isLink(); });
}

// Each step but the first takes a message of the rank before, each but the last gives one to the rank behind. Empty:
// this is no ring.
std::vector<Phase> phasesOf(const Schedule& schedule) {
  std::vector<Phase> phases;
  const std::vector<int> before{(schedule.rank + schedule.size - 1) % schedule.size},
      behind{(schedule.rank + 1) % schedule.size};
  if (schedule.inPeers != before || schedule.outPeers != behind || schedule.maxLag != 0) return {};
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    const Phase phase{hasLink(schedule.from(step)), hasLink(schedule.to(step)), step.fromCount, 1};
    if (phase.receives != (i > 0) || phase.sends != (i + 1 < schedule.steps.size()) || step.span != 1) return {};
    const bool same = !phases.empty() && phases.back().receives == phase.receives &&
                      phases.back().sends == phase.sends && phases.back().sources == phase.sources;
    if (same) {
      ++phases.back().steps;
    } else {
      phases.push_back(phase);
    }
  }
  return phases;
}

// When everything was or will be, on the ranks of one host: plain times, so that two moments can be compared.
class Moment {
 public:
  Moment(size_t members, size_t channels, size_t depth)
      : channels_(channels), depth_(depth), lanes_(members * channels), times_(lanes_ * (2 + depth) + members * 3) {}

  // Of the lane of a channel on a member: when it is through with its last step, when what it sent last arrives, and
  // from when on a slot of its link has room.
  Picoseconds& free(size_t member, size_t channel) { return times_[lane(member, channel)]; }
  Picoseconds& arrival(size_t member, size_t channel) { return times_[lanes_ + lane(member, channel)]; }
  Picoseconds& room(size_t member, size_t channel, size_t number) {
    return times_[2 * lanes_ + lane(member, channel) * depth_ + number % depth_];
  }
  // Of the link that leaves a member: when its two resources are free, and when it was last given a slot.
  Picoseconds& outFree(size_t member) { return times_[ofLinks() + 3 * member]; }
  Picoseconds& inFree(size_t member) { return times_[ofLinks() + 3 * member + 1]; }
  Picoseconds& given(size_t member) { return times_[ofLinks() + 3 * member + 2]; }

  // By how much all is later than then; nullopt where that is not the same for all.
  std::optional<Picoseconds> laterThan(const Moment& then) const {
    const Picoseconds shift = times_[0] - then.times_[0];
    for (size_t i = 1; i < times_.size(); ++i)
      if (times_[i] - then.times_[i] != shift) return std::nullopt;
    return shift;
  }
  void postpone(Picoseconds by) {
    for (Picoseconds& time : times_) time += by;
  }

 private:
  size_t lane(size_t member, size_t channel) const { return member * channels_ + channel; }
  size_t ofLinks() const { return lanes_ * (2 + depth_); }

  size_t channels_, depth_, lanes_;
  std::vector<Picoseconds> times_;
};

class RingForm {
 public:
  RingForm(std::vector<Phase> phases, const Network& network, const kernels::Layout& layout)
      : phases_(std::move(phases)),
        network_(network),
        contention_(network),
        layout_(layout),
        members_(static_cast<size_t>(network.cluster().ranksPerHost)),
        channels_(static_cast<size_t>(network.cluster().channels)),
        depth_(network.cluster().depth),
        bytes_(channels_),
        posted_(channels_),
        taken_(channels_),
        now_(members_, channels_, depth_) {
    layout_.channels = static_cast<uint32_t>(channels_);
    outcome_.busy.resize(network.resources());
    outcome_.bytes.resize(network.resources());
    const int ranks = network.cluster().ranks();
    for (int rank = 0; rank < network.cluster().ranksPerHost; ++rank) {
      Path path = network.path(rank, (rank + 1) % ranks);
      path.in = network.onFirstHost(path.in);
      paths_.push_back(path);
    }
  }

  std::optional<Outcome> run() {
    const size_t whole = wholeRounds();
    setRound(0);
    repeat(whole, [&] { runRound(); });
    account(whole);
    for (size_t round = whole; setRound(round); ++round) {
      runRound();
      account(1);
    }
    if (overtaken_) return std::nullopt;
    for (size_t member = 0; member < members_; ++member) outcome_.finish.push_back(finishOf(member));
    return std::move(outcome_);
  }

 private:
  // Those in which every channel has as much as a slot takes; they come first.
  size_t wholeRounds() {
    size_t least = SIZE_MAX;
    for (layout_.channel = 0; layout_.channel < channels_; ++layout_.channel)
      least = std::min(least, layout_.shareCount(0, true) / layout_.chunk);
    return least;
  }

  // What each channel's slots carry; false: nothing.
  bool setRound(size_t round) {
    for (layout_.channel = 0; layout_.channel < channels_; ++layout_.channel)
      bytes_[layout_.channel] = static_cast<uint32_t>(layout_.piece(0, round, true).count * kElementBytes);
    return std::ranges::any_of(bytes_, [](uint32_t bytes) { return bytes != 0; });
  }

  // Does something many times, or as many of them as it takes until it repeats itself. Slots have their turns again
  // after `depth` times, so only then all can be as before. What it is compared with is taken anew at ever longer
  // intervals (R. Brent, "An improved Monte Carlo factorization algorithm", 1980).
  template <class Action>
  void repeat(size_t times, Action action) {
    Moment then = now_;
    for (size_t number = 0, since = 0, interval = 2 * depth_; number < times;) {
      action();
      ++number, ++since;
      if (since % depth_ != 0) continue;
      if (const auto period = now_.laterThan(then)) {
        const size_t left = (times - number) / since;
        now_.postpone(left * *period);
        number += left * since;
        for (; number < times; ++number) action();
      } else if (since >= interval) {
        then = now_;
        since = 0, interval *= 2;
      }
    }
  }

  void runRound() {
    for (const Phase& phase : phases_) repeat(phase.steps, [&] { runStep(phase); });
  }

  void runStep(const Phase& phase) {
    for (size_t channel = 0; channel < channels_; ++channel)
      for (size_t member = 0; member < members_ && bytes_[channel] != 0; ++member) execute(phase, member, channel);
    for (size_t channel = 0; channel < channels_; ++channel) {
      if (bytes_[channel] == 0) continue;
      for (size_t member = 0; member < members_; ++member) {
        if (phase.receives) release(member, channel);
        if (phase.sends) send(member, channel);
      }
      taken_[channel] += phase.receives;
      posted_[channel] += phase.sends;
    }
  }

  size_t before(size_t member) const { return (member == 0 ? members_ : member) - 1; }

  void execute(const Phase& phase, size_t member, size_t channel) {
    Picoseconds& free = now_.free(member, channel);
    if (phase.receives) free = std::max(free, now_.arrival(before(member), channel));
    if (phase.sends) free = std::max(free, now_.room(member, channel, posted_[channel]));
    free += network_.combineTime(bytes_[channel], phase.sources);
  }

  void release(size_t member, size_t channel) {
    const size_t from = before(member);
    now_.room(from, channel, taken_[channel]) = now_.free(member, channel) + paths_[from].latency;
  }

  void send(size_t member, size_t channel) {
    const Path& path = paths_[member];
    const uint32_t bytes = bytes_[channel];
    const Picoseconds done = now_.free(member, channel);
    overtaken_ |= done < now_.given(member);
    now_.given(member) = done;
    const Picoseconds out = std::max(done, now_.outFree(member)), in = std::max(out, now_.inFree(member));
    now_.outFree(member) = out + contention_.lengthOf(path.out, bytes);
    now_.inFree(member) = in + contention_.lengthOf(path.in, bytes);
    now_.arrival(member, channel) = contention_.arrival(path, bytes, out, in);
  }

  void account(size_t rounds) {
    size_t slots = 0;
    for (const Phase& phase : phases_) slots += phase.sends ? phase.steps * rounds : 0;
    for (const Path& path : paths_)
      for (const uint32_t bytes : bytes_)
        for (const uint32_t resource : {path.out, path.in}) {
          outcome_.busy[resource] += slots * contention_.lengthOf(resource, bytes);
          outcome_.bytes[resource] += slots * bytes;
        }
  }

  Picoseconds finishOf(size_t member) {
    Picoseconds last = 0;
    for (size_t channel = 0; channel < channels_; ++channel) last = std::max(last, now_.free(member, channel));
    return last;
  }

  std::vector<Phase> phases_;
  const Network& network_;
  Contention contention_;
  kernels::Layout layout_;
  size_t members_, channels_, depth_;
  std::vector<Path> paths_;             // from each member to the rank behind it
  std::vector<uint32_t> bytes_;         // of a slot of each channel, in this round
  std::vector<size_t> posted_, taken_;  // slots of each channel, on every rank alike
  Moment now_;
  bool overtaken_ = false;
  Outcome outcome_;
};

}  // namespace

std::optional<Outcome> ringOutcome(const Schedule& schedule, const Network& network, const kernels::Layout& layout) {
  std::vector<Phase> phases = phasesOf(schedule);
  // One slot a link would have a step wait for another of the same moment.
  if (phases.empty() || network.cluster().depth < 2) return std::nullopt;
  return RingForm(std::move(phases), network, layout).run();
}

}  // namespace tutti::sim
