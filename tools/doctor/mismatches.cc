#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "doctor/finders.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

// Ranks that made the same call.
struct Party {
  const Call* call;
  std::vector<int> ranks;
  bool waits = false;
};

std::vector<Party> partiesOf(const std::vector<View::Entry>& entries) {
  std::vector<Party> parties;
  for (const auto& [rank, call] : entries) {
    auto at = std::find_if(parties.begin(), parties.end(), [&](const Party& one) { return one.call->matches(*call); });
    if (at == parties.end()) at = parties.insert(parties.end(), {call, {}, false});
    at->ranks.push_back(rank);
    at->waits = at->waits || !call->done();
  }
  std::stable_sort(parties.begin(), parties.end(),
                   [](const Party& a, const Party& b) { return a.ranks.size() > b.ranks.size(); });
  return parties;
}

// The minority is to blame; where there is none, nobody can say.
std::vector<int> minorityOf(const std::vector<Party>& parties) {
  std::vector<int> ranks;
  for (const Party& party : parties)
    if (party.ranks.size() < parties.front().ranks.size())
      ranks.insert(ranks.end(), party.ranks.begin(), party.ranks.end());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

struct Aspect {
  FindingKind kind;
  bool (*differs)(const Call&, const Call&);
  std::string (*word)(const Call&);
};

// In what calls of one kind may differ, and how that is said of each party.
const Aspect kAspects[] = {
    {FindingKind::kOtherType, [](const Call& a, const Call& b) { return a.type != b.type; },
     [](const Call& call) { return fmt::format("{} elements", tutti::nameOf(call.type)); }},
    {FindingKind::kOtherCount, [](const Call& a, const Call& b) { return a.count != b.count; },
     [](const Call& call) { return elementsText(call.count); }},
    {FindingKind::kOtherOperator, [](const Call& a, const Call& b) { return a.op != b.op; },
     [](const Call& call) {
       return call.op ? fmt::format("the operator {}", tutti::nameOf(*call.op)) : "no operator";
     }},
    {FindingKind::kOtherRoot, [](const Call& a, const Call& b) { return a.root != b.root; },
     [](const Call& call) { return call.root ? fmt::format("rank {} as the root", *call.root) : "no root"; }},
    {FindingKind::kOtherTag, [](const Call& a, const Call& b) { return a.tag != b.tag; },
     [](const Call& call) { return call.tag != 0 ? fmt::format("the tag {}", call.tag) : "no tag"; }},
};

std::string wholeCalls(const std::vector<Party>& parties) {
  std::string text;
  for (const Party& party : parties) {
    if (!text.empty()) text += "; ";
    const char* verb = party.waits ? agree(party.ranks, "waits in", "wait in") : agree(party.ranks, "made", "made");
    text += fmt::format("{} {} {}", namesOf(party.ranks), verb, describe(*party.call));
  }
  return text;
}

std::string oneAspect(const std::vector<Party>& parties, const Aspect& aspect) {
  std::string text = fmt::format("the calls of {} differ", title(*parties.front().call));
  const char* before = ": ";
  for (const Party& party : parties) {
    text += fmt::format("{}{} {} {}", before, namesOf(party.ranks), agree(party.ranks, "expects", "expect"),
                        aspect.word(*party.call));
    before = ", ";
  }
  return text;
}

Finding tell(const std::vector<Party>& parties) {
  const auto anyDiffers = [&](auto differs) {
    return std::any_of(parties.begin(), parties.end(),
                       [&](const Party& one) { return differs(*parties.front().call, *one.call); });
  };
  if (anyDiffers([](const Call& a, const Call& b) { return a.kind != b.kind; }))
    return {FindingKind::kOtherCollective, minorityOf(parties), wholeCalls(parties)};
  std::vector<const Aspect*> aspects;
  for (const Aspect& aspect : kAspects)
    if (anyDiffers(aspect.differs)) aspects.push_back(&aspect);
  const std::string text = aspects.size() == 1 ? oneAspect(parties, *aspects.front()) : wholeCalls(parties);
  return {aspects.front()->kind, minorityOf(parties), text};
}

// A message by its sender, its receiver and its number between them.
using Name = std::tuple<int, int, uint64_t>;
struct Ends {
  const Call* send = nullptr;
  const Call* receive = nullptr;
};

std::map<Name, Ends> messagesOf(const View& view) {
  std::map<Name, Ends> messages;
  for (const Record& record : view.job().records)
    for (const Call& call : record.calls) {
      if (call.line == Line::kSend) messages[{record.rank, *call.peer, call.number}].send = &call;
      if (call.line == Line::kReceive) messages[{*call.peer, record.rank, call.number}].receive = &call;
    }
  return messages;
}

}  // namespace

void findOtherCollectives(const View& view, Findings& findings) {
  for (const auto& [number, entries] : view.collectives()) {
    const auto parties = partiesOf(entries);
    if (parties.size() > 1) return findings.push_back(tell(parties));
  }
}

void findOtherMessages(const View& view, Findings& findings) {
  for (const auto& [name, ends] : messagesOf(view)) {
    if (!ends.send || !ends.receive || ends.send->matches(*ends.receive)) continue;
    const auto [from, to, number] = name;
    const auto what = [](const Call& call) { return elementsText(call.count, tutti::nameOf(call.type)); };
    std::vector<int> both = {std::min(from, to), std::max(from, to)};
    findings.push_back({FindingKind::kOtherMessage, std::move(both),
                        fmt::format("message #{} from rank {} to rank {}: rank {} sends {}, rank {} expects {}", number,
                                    from, to, from, what(*ends.send), to, what(*ends.receive))});
    return;
  }
}

}  // namespace tutti::doctor
