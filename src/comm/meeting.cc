#include "comm/meeting.h"

#include <fmt/format.h>

#include <algorithm>

#include "job/ranks.h"
#include "launch/rendezvous.h"

namespace tutti::comm {
namespace {

const char* nameOfMeeting(Meeting call) {
  switch (call) {
    case Meeting::kSplit:
      return "tuttiCommSplit";
    case Meeting::kDuplicate:
      return "tuttiCommDuplicate";
    case Meeting::kGrow:
      return "tuttiCommGrow";
  }
  return "";
}

// What one rank has told of its growth.
struct GrowthShare {
  int ranks = 0;
  Bytes id;  // as the plane has sealed it; empty: none
  std::optional<control::Refusal> lack;
};

Bytes encodeShare(const Growth& growth, const control::Plane& plane) {
  Writer out;
  out.value<int32_t>(growth.ranks).value<uint8_t>(growth.lack.has_value());
  if (growth.lack) out.block(encode(*growth.lack));
  if (!growth.lack && growth.id) out.block(plane.sealId(*growth.id));
  return out.take();
}

GrowthShare decodeShare(std::span<const std::byte> bytes) {
  Reader in(bytes);
  GrowthShare share;
  share.ranks = in.value<int32_t>();
  if (in.value<bool>()) share.lack = control::decodeRefusal(in.block());
  if (share.lack || in.empty()) return share;
  const auto id = in.block();
  share.id.assign(id.begin(), id.end());
  return share;
}

void requireNoLack(const Team& team, const std::vector<GrowthShare>& shares) {
  const auto& own = shares[static_cast<size_t>(team.rank())].lack;
  if (own) throw Error(own->code, own->text);
  for (int r = 0; r < team.size(); ++r)
    if (const auto& lack = shares[static_cast<size_t>(r)].lack)
      throw Error(ErrorCode::kRemote, fmt::format("{} cannot grow the communicator: {}", team.rankName(r), lack->text));
}

void requireOneSize(const Team& team, const std::vector<GrowthShare>& shares) {
  const int ranks = shares.front().ranks;
  const auto other = std::ranges::find_if(shares, [&](const GrowthShare& one) { return one.ranks != ranks; });
  if (other != shares.end())
    throw Error(
        ErrorCode::kInvalidUsage,
        fmt::format("the ranks disagree on the size to grow to: {} says {}, {} says {}. Give the same `ranks` "
                    "on all, those that join included",
                    team.rankName(0), ranks, team.rankName(static_cast<int>(other - shares.begin())), other->ranks));
  if (ranks <= team.size() || ranks > control::kMaxRanks)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("tuttiCommGrow: ranks is {}: a communicator of {} grows to {} to {} ranks", ranks,
                            team.size(), team.size() + 1, control::kMaxRanks));
}

int rankWithTheId(const Team& team, const std::vector<GrowthShare>& shares) {
  std::vector<int> holders;
  for (int r = 0; r < team.size(); ++r)
    if (!shares[static_cast<size_t>(r)].id.empty()) holders.push_back(r);
  if (holders.size() == 1) return holders.front();
  if (holders.empty())
    throw Error(ErrorCode::kInvalidUsage,
                "no rank of the communicator brings a unique id to tuttiCommGrow: one calls tuttiCommGetUniqueId, and "
                "gives it");
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("{} bring a unique id each to tuttiCommGrow: one rank alone, the others give NULL",
                          control::nameRanks(holders)));
}

}  // namespace

std::vector<Bytes> meet(Team& team, Meeting call, std::span<const std::byte> mine, Deadline deadline,
                        const std::function<void()>& met) {
  Bytes told = Writer().value(call).take();
  told.insert(told.end(), mine.begin(), mine.end());
  std::vector<Bytes> all = team.plane().allGather(told, deadline);
  if (met) met();
  const auto callOf = [&](size_t r) { return Reader(all[r]).oneOf(Meeting::kSplit, Meeting::kGrow); };
  for (size_t r = 1; r < all.size(); ++r)
    if (callOf(r) != callOf(0))
      throw Error(ErrorCode::kInvalidUsage,
                  fmt::format("calls do not match: {} is in {}, {} is in {}", team.rankName(0),
                              nameOfMeeting(callOf(0)), team.rankName(static_cast<int>(r)), nameOfMeeting(callOf(r))));
  for (Bytes& one : all) one.erase(one.begin(), one.begin() + sizeof call);
  return all;
}

control::UniqueId meetToGrow(Team& team, const Growth& growth, Deadline deadline, const std::function<void()>& begun) {
  const auto all = meet(team, Meeting::kGrow, encodeShare(growth, team.plane()), deadline, begun);
  std::vector<GrowthShare> shares;
  for (const Bytes& one : all) shares.push_back(decodeShare(one));
  requireNoLack(team, shares);
  requireOneSize(team, shares);
  const int holder = rankWithTheId(team, shares);
  return team.plane().openId(shares[static_cast<size_t>(holder)].id, holder);
}

control::UniqueId withBeside(control::UniqueId id, const Growth& growth, int rank) {
  return control::withSecret(std::move(id), growth.secret, rank);
}

std::string notGrown(const Team& team, const std::exception& why) {
  return fmt::format("{} does not grow its communicator: {}", team.rankName(team.rank()), why.what());
}

}  // namespace tutti::comm
