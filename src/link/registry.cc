#include "link/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/costs.h"
#include "base/error.h"
#include "base/trimmed.h"

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
  transports_.push_back(std::move(transport));
  allowed_.push_back(true);
}

std::vector<std::string> Registry::allowed() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < transports_.size(); ++i)
    if (allowed_[i]) names.emplace_back(transports_[i]->name());
  return names;
}

void Registry::narrow(std::string_view list) {
  std::vector<std::string_view> known;
  for (const auto& transport : transports_) known.push_back(transport->name());
  const std::string_view text = trimmed(list);
  const bool excludes = text.starts_with('^');
  const auto names = splitAtCommas(excludes ? text.substr(1) : text);
  for (const auto name : names)
    if (std::ranges::find(known, name) == known.end())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the list of transports \"{}\" names \"{}\"; this build "
                              "has {}. Give some of these, separated by commas, or ^ and those to leave out",
                              list, name, fmt::join(known, ", ")));
  std::vector<bool> allowed = allowed_;
  for (size_t i = 0; i < known.size(); ++i)
    allowed[i] = allowed[i] && (std::ranges::find(names, known[i]) != names.end()) != excludes;
  if (std::ranges::find(allowed, true) == allowed.end())
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the list of transports \"{}\" leaves none; this build has {}",
                                                         list, fmt::join(known, ", ")));
  allowed_ = std::move(allowed);
}

// Some of it comes from peers: what is kept has an end.
bool Registry::isNews(const std::string& text) const noexcept {
  constexpr size_t kMostTexts = 64;
  try {
    const std::lock_guard lock(told_->mutex);
    return told_->texts.size() < kMostTexts && told_->texts.insert(text).second;
  } catch (const std::exception&) {  // no memory to remember it
    return true;
  }
}

std::vector<Transport*> Registry::candidates(const topology::PeerInfo& self, const topology::PeerInfo& peer,
                                             std::vector<std::string>* excluded) const {
  std::vector<std::pair<double, Transport*>> usable;
  for (size_t i = 0; i < transports_.size(); ++i) {
    Transport& transport = *transports_[i];
    const Reachability reach = allowed_[i] ? transport.reach(self, peer)
                                           : Reachability{.reason = "left out by TUTTI_TRANSPORT (config.transports)"};
    if (reach.possible) {
      usable.emplace_back(costOf(reach), &transport);
    } else if (excluded != nullptr) {
      excluded->push_back(fmt::format("{}: {}", transport.name(), reach.reason));
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
