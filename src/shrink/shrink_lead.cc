// A survivor that is called by the others, and leads them when nobody below it is left.
#include <algorithm>

#include "job/parcel.h"
#include "process/log.h"
#include "shrink/shrink.h"

namespace tutti::control {
namespace {

constexpr std::chrono::milliseconds kLongestAskingPause(250), kLongestProbePause(400);
constexpr size_t kMaxProbes = 256;
// An attempt fails because someone has gone, and then succeeds without that one. So many failures are something else.
constexpr int kMaxFailures = 100;

}  // namespace

// --- being called ---

// Of a rank that calls again and again one line at most is still open.
void Shrink::keepAlone(int rank, const std::shared_ptr<Line>& line) {
  std::weak_ptr<Line>& last = lastTold_[rank];
  if (const auto old = last.lock(); old && old != line) old->close();
  last = line;
}

void Shrink::tellLast(int rank, const std::shared_ptr<Line>& line, Kind kind, Bytes payload) {
  keepAlone(rank, line);
  line->setEvents({});
  line->send(kind, std::move(payload));
  line->finish();
}

void Shrink::arrived(const std::shared_ptr<Line>& line, const Frame& first) {
  const ShrinkCall call = decodeShrinkCall(first.payload);
  if (call.rank < 0 || call.rank >= home_.size() || call.rank == home_.rank())
    throw Error(ErrorCode::kRemote, fmt::format("a call to shrink from rank {} of {}", call.rank, home_.size()));
  if (const auto at = gone_.find(call.rank); at != gone_.end())
    return tellLast(call.rank, line, Kind::kShrinkEnd,
                    encode(Refusal{ErrorCode::kRemote, "the others go on without this rank: " + at->second}));
  const bool probes = static_cast<Kind>(first.type) == Kind::kShrinkProbe;
  if (call.serial < serial()) {
    const Bytes job = Writer().value(committed_[call.serial]).take();
    if (probes) return tellLast(call.rank, line, Kind::kShrinkCommit, job);
    keepAlone(call.rank, line);
    inform(call.rank, line, committed_[call.serial]);
    return settle();
  }
  if (ownerLeft_) return line->close();  // it finds this rank gone when it calls again
  if (call.serial == serial() && !belongs(line, call, probes)) return;
  if (probes) return tellLast(call.rank, line, Kind::kShrinkWait, encodeWords(waitText()));
  keepCaller(line, call);
}

void Shrink::keepCaller(const std::shared_ptr<Line>& line, const ShrinkCall& call) {
  Caller& caller = callers_[call.rank];
  if (caller.line) {
    caller.line->setEvents({});
    caller.line->close();
  }
  caller = {line, call, false};
  line->expectRanks(1, home_.size());
  line->forgetKeys();
  Line::Events events;
  events.frame = [this, rank = call.rank](Frame& frame) { onCaller(rank, frame); };
  events.closed = [this, rank = call.rank](Text) { callerGone(rank); };
  line->setEvents(std::move(events));
  heartbeat_.watch(line, [this, raw = line.get(), rank = call.rank](Text how) {
    raw->close();
    const auto at = callers_.find(rank);
    if (at != callers_.end() && at->second.line.get() == raw)
      giveUp(rank, fmt::format("{} {}", describe(home_.who(rank)), how));
  });
  // It has let go of the attempt that was under way.
  if (leads() && trial_ && std::ranges::count(trial_->proposal.survivors, call.rank) != 0) again();
  if (leads()) leadOn();
  if (!trial_) line->send(Kind::kShrinkWait, encodeWords(waitText()));
}

void Shrink::onCaller(int rank, Frame& frame) try {
  if (static_cast<Kind>(frame.type) == Kind::kShrinkTried) return noteTried(rank, decodeShrinkTried(frame.payload));
  if (static_cast<Kind>(frame.type) == Kind::kShrinkDiffer) {
    const ShrinkDiffer differ = decodeShrinkDiffer(frame.payload);
    return roundOver(differ.round, differ.text, false);
  }
  if (static_cast<Kind>(frame.type) == Kind::kShrinkGaveUp) return onGivenUp(rank, decodeRefusal(frame.payload).text);
  throw Error(ErrorCode::kRemote, fmt::format("a frame of type {} that does not belong here", frame.type));
} catch (const Error& e) {
  giveUp(rank, fmt::format("{} said what cannot be understood: {}", describe(home_.who(rank)), e.what()));
}

// Nobody can go on without one that is there, and does not come: those who wait here are told, whether this rank has
// called yet or not. Who follows another one has told that one.
void Shrink::onGivenUp(int rank, Text why) {
  const auto at = callers_.find(rank);
  if (at == callers_.end()) return;
  const bool isOfThis = at->second.call.serial == serial();
  at->second.line->close();
  callers_.erase(at);
  if (isOfThis && (!call_ || leads())) endAll(ErrorCode::kRemote, why);
}

// It may be there all the same, and call again.
void Shrink::callerGone(int rank) {
  callers_.erase(rank);
  if (!leads()) return;
  if (trial_ && std::ranges::count(trial_->proposal.survivors, rank) != 0) return again();
  leadOn();
}

// Who is waited for, as this rank sees it.
std::string Shrink::waitText() const {
  const auto name = [&](int rank) { return describe(home_.who(rank)); };
  if (!call_) return fmt::format("; {} is there, but has not called shrink", name(home_.rank()));
  if (!leads()) return fmt::format("; {} waits for {}", name(home_.rank()), name(leader_));
  const auto absent = missing();
  constexpr size_t kMaxNames = 8;
  if (absent.size() > kMaxNames) return fmt::format("; {} have not called shrink", nameRanks(absent));
  std::string text;
  for (const int rank : absent) text += fmt::format("{}{}", text.empty() ? "; missing: " : ", ", name(rank));
  return text;
}

// --- leading ---

std::vector<int> Shrink::missing() const {
  std::vector<int> absent;
  for (int rank = 0; rank < home_.size(); ++rank) {
    const auto at = callers_.find(rank);
    const bool here = rank == home_.rank() || (at != callers_.end() && at->second.call.serial == serial());
    if (!here && !gone_.contains(rank) && !leavesOut(rank)) absent.push_back(rank);
  }
  return absent;
}

void Shrink::leadOn() {
  if (!leads() || trial_ || pause_ != 0) return;
  if (missing().empty()) return propose();
  if (probeTimer_ == 0) probeTimer_ = reactor_.after(nextProbe_, [this] { probe(); });
}

void Shrink::propose() {
  ShrinkTry proposal;
  for (int rank = 0; rank < home_.size(); ++rank)
    if (rank == home_.rank() || callers_.contains(rank)) proposal.survivors.push_back(rank);
  RootPlace place = anyRootPlace();
  const Secret drawn = place.id.secret;
  try {
    place.id = home_.childId(place.id);
    root_ = startRoot(place, call_->like.network, call_->like.deadline);
    proposal.id = root_->id();
    proposal.id.secret = drawn;
    tellProposal(proposal);
  } catch (const std::exception& e) {
    return endAll(
        codeOf(e),
        fmt::format("{} cannot open a root for the new communicator: {}", describe(home_.who(home_.rank())), e.what()),
        home_.rank());
  }
  startTrial(std::move(proposal));
}

void Shrink::tellProposal(ShrinkTry proposal) {
  for (auto& [rank, caller] : callers_) {
    caller.joined = false;
    if (caller.call.serial != serial()) continue;
    proposal.parcel = sealFor(home_.who(rank).endpoint.key, home_.key(), proposal.id.job, proposal.id.secret);
    caller.line->send(Kind::kShrinkTry, encode(proposal));
  }
}

void Shrink::noteTried(int rank, const ShrinkTried& how) {
  if (!leads() || !trial_ || trial_->proposal.id.job != how.job) return;
  if (how.refusal) {
    const bool passing = how.refusal->code == ErrorCode::kRemote || how.refusal->code == ErrorCode::kTimeout;
    if (passing && ++failures_ < kMaxFailures) return again();
    return endAll(how.refusal->code,
                  fmt::format("{} cannot join the new communicator: {}", describe(home_.who(rank)), how.refusal->text),
                  rank);
  }
  if (const auto at = callers_.find(rank); at != callers_.end()) at->second.joined = true;
  const bool all = std::ranges::all_of(callers_, [](const auto& one) { return one.second.joined; });
  if (all && trial_->joined) commit(how.job);
}

// Someone has gone: his line will say so, if it has not yet.
void Shrink::again() {
  drop(trial_);
  if (root_) root_->halt();
  root_.reset();
  tellCallers(Kind::kShrinkAgain, {});
  reactor_.cancel(pause_);
  pause_ = reactor_.after(nextPause_, [this] {
    pause_ = 0;
    leadOn();
  });
  nextPause_ = std::min<Reactor::Clock::duration>(2 * nextPause_, kLongestAskingPause);
}

void Shrink::probe() {
  probeTimer_ = 0;
  if (!leads() || trial_) return;
  const auto absent = missing();
  for (const int rank : absent)
    if (!probes_.contains(rank) && probes_.size() < kMaxProbes) probeOne(rank);
  if (const std::string text = waitText(); text != lastWaitText_) {
    lastWaitText_ = text;
    tellCallers(Kind::kShrinkWait, encodeWords(text));
  }
  nextProbe_ = std::min<Reactor::Clock::duration>(2 * nextProbe_, kLongestProbePause);
  leadOn();
}

void Shrink::probeOne(int rank) {
  const auto won = [this, rank](std::shared_ptr<Line> line) {
    Line::Events events;
    events.frame = [this, rank](Frame& frame) { onProbed(rank, frame); };
    events.closed = [this, rank](Text) { probes_.erase(rank); };
    line->setEvents(std::move(events));
    heartbeat_.watch(line, [this, rank, raw = line.get()](Text how) {
      raw->close();
      probes_.erase(rank);
      giveUp(rank, fmt::format("{} {}", describe(home_.who(rank)), how));
    });
    line->send(Kind::kShrinkProbe, encode(ownCall()));
    probes_[rank] = {nullptr, std::move(line)};
  };
  probes_[rank].reach = reach(rank, won, [this, rank](Text why) {
    probes_.erase(rank);
    giveUp(rank, fmt::format("{} {}", describe(home_.who(rank)), why));
  });
}

void Shrink::onProbed(int rank, Frame& frame) {
  const auto line = probes_[rank].line;
  probes_.erase(rank);
  line->close();
  try {
    if (static_cast<Kind>(frame.type) == Kind::kShrinkCommit) return commit(Reader(frame.payload).value<uint64_t>());
    if (static_cast<Kind>(frame.type) == Kind::kShrinkDiffer) {
      const ShrinkDiffer differ = decodeShrinkDiffer(frame.payload);
      return roundOver(differ.round, differ.text, false);
    }
    if (static_cast<Kind>(frame.type) != Kind::kShrinkEnd) return;
    const Refusal refusal = decodeRefusal(frame.payload);
    end(refusal.code, refusal.text);
  } catch (const Error& e) {
    log::warn("{} answered a probe with what cannot be understood: {}", describe(home_.who(rank)), e.what());
  }
}

void Shrink::tellCallers(Kind kind, const Bytes& payload) {
  const auto shared = std::make_shared<const Bytes>(payload);
  for (const auto& [rank, caller] : callers_)
    if (caller.call.serial == serial()) caller.line->send(kind, shared);
}

// `whose`: the rank that lacks something, which its own system has refused; to the others it is another rank's failure.
void Shrink::endAll(ErrorCode code, Text text, int whose) {
  const auto codeFor = [&](int rank) {
    return code == ErrorCode::kSystem && rank != whose ? ErrorCode::kRemote : code;
  };
  for (const auto& [rank, caller] : callers_)
    tellLast(rank, caller.line, Kind::kShrinkEnd, encode(Refusal{codeFor(rank), text}));
  callers_.clear();
  end(codeFor(home_.rank()), text);
}

}  // namespace tutti::control
