#include "link/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/costs.h"
#include "base/error.h"
#include "base/trimmed.h"
#include "link/plugin.h"

namespace tutti::link {
namespace {

double costOf(const Reachability& reach) noexcept {
  return reach.latencyUs + (reach.bandwidthGBs > 0 ? costs::kTypicalBytes / (reach.bandwidthGBs * 1e3) : 1e12);
}

std::vector<std::string_view> splitAtCommas(std::string_view list) {
  std::vector<std::string_view> names;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    names.push_back(trimmed(list.substr(at, comma - at)));
    at = comma + 1;
  }
  return names;
}

}  // namespace

void Registry::add(std::unique_ptr<Transport> transport) {
  for (const auto& other : transports_)
    if (other->name() == transport->name())
      throw Error(ErrorCode::kInvalidArgument, fmt::format("two transports are called {}: each needs a name of its own",
                                                           familyOf(transport->name())));
  transports_.push_back(std::move(transport));
  allowed_.push_back(true);
}

std::vector<std::string> Registry::allowed() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < transports_.size(); ++i)
    if (allowed_[i]) names.emplace_back(transports_[i]->name());
  return names;
}

std::vector<std::string> Registry::terms() const {
  std::vector<std::string> all;
  for (size_t i = 0; i < transports_.size(); ++i) {
    if (!allowed_[i]) continue;
    const std::string announced = transports_[i]->announced();
    const std::string name(transports_[i]->name());
    all.push_back(announced.empty() ? name : fmt::format("{} ({})", name, announced));
  }
  std::ranges::sort(all);
  return all;
}

void Registry::narrow(std::string_view list) {
  std::vector<std::string_view> known;
  for (const auto& transport : transports_) known.push_back(transport->name());
  const std::string_view text = trimmed(list);
  const bool excludes = text.starts_with('^');
  const auto names = splitAtCommas(excludes ? text.substr(1) : text);
  // Some a communicator has only where it is on a GPU: others know their names.
  const auto isKnown = [&](std::string_view name) {
    return std::ranges::find(known, name) != known.end() ||
           (name.ends_with(kOnGpu) && std::ranges::any_of(transports_, [&](const auto& one) {
              return one->name() == familyOf(name) && one->reachesGpus();
            }));
  };
  for (const auto name : names)
    if (!isKnown(name))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the list of transports \"{}\" names \"{}\"; this build "
                              "has {}. Give some of these, separated by commas, or ^ and those to leave out",
                              list, name, fmt::join(known, ", ")));
  // Who wants NAME+gpu has NAME where buffers are not on a GPU.
  const bool onGpu = std::ranges::any_of(known, [](std::string_view name) { return name.ends_with(kOnGpu); });
  const auto isNamed = [&](std::string_view name) {
    return std::ranges::any_of(names, [&](std::string_view one) {
      return one == name || one == familyOf(name) || (!onGpu && !excludes && familyOf(one) == name);
    });
  };
  std::vector<bool> allowed = allowed_;
  for (size_t i = 0; i < known.size(); ++i) allowed[i] = allowed[i] && isNamed(known[i]) != excludes;
  if (std::ranges::find(allowed, true) == allowed.end())
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the list of transports \"{}\" leaves none; this build has {}",
                                                         list, fmt::join(known, ", ")));
  allowed_ = std::move(allowed);
}

// Some of it comes from peers: what is kept has an end.
bool Registry::isNews(const std::string& text) const noexcept {
  constexpr size_t kMostTexts = 64;
  if (quiet_) return false;
  try {
    const std::lock_guard lock(told_->mutex);
    return told_->texts.size() < kMostTexts && told_->texts.insert(text).second;
  } catch (const std::exception&) {  // no memory to remember it
    return true;
  }
}

std::map<std::string, std::string> Registry::lacks(const topology::PeerInfo& self) const {
  std::map<std::string, std::string> all;
  for (size_t i = 0; i < transports_.size(); ++i) {
    const std::string why = allowed_[i] ? transports_[i]->lack(self) : std::string();
    if (!why.empty()) all.emplace(transports_[i]->name(), why);
  }
  return all;
}

Reachability Registry::reach(size_t number, const topology::PeerInfo& self, const topology::PeerInfo& peer) const {
  const Transport& transport = *transports_[number];
  if (!allowed_[number]) return {.reason = "left out by TUTTI_TRANSPORT (config.transports)"};
  if (secret_ && !transport.keepsSecrets()) return {.reason = "it does not encrypt, as TUTTI_ENCRYPT asks for"};
  const std::string name(transport.name());
  for (const topology::PeerInfo* end : {&self, &peer})
    if (const auto lack = end->lacks.find(name); lack != end->lacks.end())
      return {.reason = self.lacks.contains(name) && peer.lacks.contains(name)
                            ? lack->second
                            : fmt::format("{} (process {} on host {})", lack->second, end->pid, end->hostName)};
  return transport.reach(self, peer);
}

// Of one that is out of the question by itself no price is known: the built-in ones come from the cheapest on.
Way Registry::wayBetween(const topology::PeerInfo& self, const topology::PeerInfo& peer) const {
  Way way;
  if (const std::vector<Transport*> usable = candidates(self, peer); !usable.empty())
    way.transport = usable.front(), way.reach = usable.front()->reach(self, peer);
  bool passed = false;  // the one that is taken
  for (size_t i = 0; i < transports_.size(); ++i) {
    passed = passed || transports_[i].get() == way.transport;
    const Reachability one = reach(i, self, peer), alone = transports_[i]->reach(self, peer);
    const bool known = alone.possible && way.transport != nullptr;
    const bool cheaper = known ? costOf(alone) < costOf(way.reach) : !passed;
    if (!one.possible && cheaper) way.notFaster.push_back(fmt::format("{}: {}", transports_[i]->name(), one.reason));
  }
  return way;
}

std::vector<Transport*> Registry::candidates(const topology::PeerInfo& self, const topology::PeerInfo& peer,
                                             std::vector<std::string>* excluded) const {
  std::vector<std::pair<double, Transport*>> usable;
  for (size_t i = 0; i < transports_.size(); ++i) {
    const Reachability way = reach(i, self, peer);
    if (way.possible) {
      usable.emplace_back(costOf(way), transports_[i].get());
    } else if (excluded != nullptr) {
      excluded->push_back(fmt::format("{}: {}", transports_[i]->name(), way.reason));
    }
  }
  // Equal costs fall back on the name, so that two ranks that registered in another order agree all the same.
  std::ranges::sort(usable, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->name() < b.second->name();
  });
  std::vector<Transport*> ordered;
  for (const auto& [cost, transport] : usable) ordered.push_back(transport);
  return ordered;
}

}  // namespace tutti::link
