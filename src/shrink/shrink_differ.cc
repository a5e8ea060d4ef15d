// Survivors that leave ranks out though they are alive, and what is done where they do not name the same.
#include "base/random.h"
#include "shrink/shrink.h"

namespace tutti::control {
namespace {

constexpr size_t kMostFarAtOnce = 64;
// Instead of a digest: of a rank that is in no call, and only tells of the round before.
constexpr uint64_t kNoList = ~uint64_t{0};

// Of ranks in their order; 0 stands for none.
uint64_t leftOutDigest(const std::set<int>& ranks) {
  if (ranks.empty()) return 0;
  const std::vector<int> list(ranks.begin(), ranks.end());
  uint64_t digest = 0;
  hashInto(&digest, sizeof digest, list.data(), list.size() * sizeof(int));
  return digest | 1;
}

std::string leftOutWords(const std::set<int>& ranks) {
  return ranks.empty() ? "none" : nameRanks({ranks.begin(), ranks.end()});
}

std::string saidOf(const ShrinkCall& call) {
  return call.differed.empty() ? "the ranks disagree on whom to leave out" : call.differed;
}

}  // namespace

std::string Shrink::leftOutText(int rank) { return fmt::format("leftOut of tuttiCommShrink names rank {}", rank); }

ShrinkCall Shrink::ownCall() const {
  if (!call_) return {home_.rank(), serial(), round_, kNoList, {}, differed_};
  return {home_.rank(), serial(), round_, leftOutDigest(call_->leftOut), leftOutWords(call_->leftOut), differed_};
}

void Shrink::refuseLeftOut(int rank, const std::shared_ptr<Line>& line) {
  tellLast(rank, line, Kind::kShrinkEnd,
           encode(Refusal{ErrorCode::kRemote, "the others go on without this rank: " + leftOutText(rank)}));
}

// The own call has come to those who called before. False: it has ended.
bool Shrink::beginRound() {
  called_ = true;
  if (std::exchange(missed_, false)) {
    called_ = false;
    end(ErrorCode::kInvalidUsage, differed_);
    return false;
  }
  for (auto at = callers_.begin(); at != callers_.end();) {
    const auto here = at++;
    if (!leavesOut(here->first)) continue;
    refuseLeftOut(here->first, here->second.line);
    callers_.erase(here);
  }
  for (const auto& [rank, caller] : callers_) {
    if (caller.call.serial != serial()) continue;
    if (caller.call.round > round_) return roundOver(caller.call.round - 1, saidOf(caller.call), false), false;
    const std::string text = differenceFrom(caller.call);
    if (!text.empty()) return roundOver(round_, text, true), false;
  }
  return true;
}

// What another rank says of itself fits what this one knows. If it does not, all who must hear of it have been told.
bool Shrink::belongs(const std::shared_ptr<Line>& line, const ShrinkCall& theirs, bool probes) {
  if (leavesOut(theirs.rank)) {
    refuseLeftOut(theirs.rank, line);
    return false;
  }
  if (theirs.round > round_) roundOver(theirs.round - 1, saidOf(theirs), false);
  if (const std::string text = differenceFrom(theirs); !text.empty() && theirs.round == round_)
    roundOver(round_, text, !probes);  // who probes leads, and calls the others
  if (theirs.round == round_) return true;
  tellLast(theirs.rank, line, Kind::kShrinkDiffer, encode(ShrinkDiffer{round_ - 1, differed_}));
  return false;
}

std::string Shrink::differenceFrom(const ShrinkCall& theirs) const {
  const ShrinkCall mine = ownCall();
  if (!call_ || mine.leftOut == theirs.leftOut || theirs.leftOut == kNoList) return {};
  const bool first = mine.rank < theirs.rank;
  const ShrinkCall &one = first ? mine : theirs, &other = first ? theirs : mine;
  const auto words = [](const ShrinkCall& call) { return call.leftOut == 0 ? "none" : call.leftOutWords; };
  return fmt::format(
      "the ranks disagree on whom to leave out: {} names {} (leftOut of tuttiCommShrink), {} names {}. "
      "Give the same list on every rank that stays",
      describe(home_.who(one.rank)), words(one), describe(home_.who(other.rank)), words(other));
}

// `tellsAll`: this rank has found it out, and so those are called who have no line here.
void Shrink::roundOver(uint64_t round, std::string text, bool tellsAll) {
  if (round < round_) return;
  std::set<int> far;
  if (call_ && (tellsAll || leads()))
    for (const int rank : missing()) far.insert(rank);
  round_ = round + 1;
  differed_ = std::move(text);
  missed_ = !std::exchange(called_, false);
  const Bytes news = encode(ShrinkDiffer{round, differed_});
  for (const auto& [rank, caller] : std::exchange(callers_, {})) tellLast(rank, caller.line, Kind::kShrinkDiffer, news);
  if (up_) tellLast(leader_, std::exchange(up_, nullptr), Kind::kShrinkDiffer, news);
  end(ErrorCode::kInvalidUsage, differed_);
  if (far.empty()) return;
  farToTell_ = std::move(far);
  stayFor(patience());
  tellFar();
}

void Shrink::tellFar() {
  while (!farToTell_.empty() && farTold_.size() < kMostFarAtOnce)
    tellOneFar(farToTell_.extract(farToTell_.begin()).value());
}

// A probe of the next round says how the last one ended.
void Shrink::tellOneFar(int rank) {
  const auto won = [this, rank](std::shared_ptr<Line> line) {
    Line::Events events;
    events.frame = [this, rank](Frame&) { toldFar(rank); };
    events.closed = [this, rank](Text) { toldFar(rank); };
    line->setEvents(std::move(events));
    line->send(Kind::kShrinkProbe, encode(ownCall()));
    farTold_[rank] = {nullptr, std::move(line)};
  };
  farTold_[rank].reach = reach(rank, won, [this, rank](Text) { toldFar(rank); });
}

void Shrink::toldFar(int rank) {
  const auto at = farTold_.find(rank);
  if (at == farTold_.end()) return;
  const Probe told = std::move(at->second);
  farTold_.erase(at);
  if (told.line) told.line->close();
  tellFar();
  settle();
}

}  // namespace tutti::control
