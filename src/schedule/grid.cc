// The reduce-scatter and the all-gather on a grid of ranks, joined into an all-reduce. See grid.h.
#include "schedule/grid.h"

#include <algorithm>
#include <numeric>

namespace tutti::schedule {

Hosts Hosts::together(int size) {
  Hosts hosts;
  hosts.ranks_.resize(size);
  std::iota(hosts.ranks_.begin(), hosts.ranks_.end(), 0);
  hosts.place_ = hosts.ranks_;
  hosts.begin_ = {0, size};
  return hosts;
}

Hosts Hosts::eachAlone(const Row& row, int size) {
  Hosts hosts = together(size);
  for (int place = 0; place < size; ++place) hosts.place_[hosts.ranks_[place] = row.rankAt(place)] = place;
  hosts.begin_.resize(size + 1);
  std::iota(hosts.begin_.begin(), hosts.begin_.end(), 0);
  return hosts;
}

Hosts Hosts::of(std::span<const int> groupOf, int size) {
  if (groupOf.empty()) return together(size);
  std::unordered_map<int, int> numbers;
  std::vector<int> host(size);
  Hosts hosts;
  hosts.begin_ = {0};
  for (int rank = 0; rank < size; ++rank) {
    const auto [place, added] = numbers.try_emplace(groupOf[rank], static_cast<int>(numbers.size()));
    if (added) hosts.begin_.push_back(0);
    host[rank] = place->second;
    hosts.begin_[host[rank] + 1]++;
  }
  std::partial_sum(hosts.begin_.begin(), hosts.begin_.end(), hosts.begin_.begin());
  std::vector<int> next = hosts.begin_;
  hosts.ranks_.resize(size);
  hosts.place_.resize(size);
  for (int rank = 0; rank < size; ++rank) {
    hosts.place_[rank] = next[host[rank]]++;
    hosts.ranks_[hosts.place_[rank]] = rank;
  }
  return hosts;
}

int Hosts::hostOf(int rank) const noexcept {
  const auto after = std::upper_bound(begin_.begin(), begin_.end(), place_[rank]);
  return static_cast<int>(after - begin_.begin()) - 1;
}

int Hosts::memberOf(int rank) const noexcept { return place_[rank] - begin_[hostOf(rank)]; }

int Hosts::smallest() const noexcept {
  int least = static_cast<int>(ranks_.size());
  for (int host = 0; host < count(); ++host) least = std::min(least, membersOf(host));
  return least;
}

uint16_t Hosts::digest() const noexcept {
  std::vector<int> hosts;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) hosts.push_back(hostOf(rank));
  return digestOf(hosts);
}

namespace {

constexpr int kDepthOfOne = 2;  // along rings, where rounds go one by one
constexpr int kMostHop = 2;     // more was no faster (docs/decisions/0048)

// A cell (lane, host) is the list of segments that the lane's ring ends (reduce-scatter) or starts (all-gather) with on
// that host. A split message has one segment per cell; with a segment per rank the cell holds those of the host's
// members lane, lane + lanes, ….
//
// The entries of the cells follow one another, each in a pass of its own over the hosts that have so many. In position
// k of the reduce-scatter phase a host works on the cell of host h - 1 - k, in position k of the all-gather phase on
// that of h - k, so that the last position of the first phase and the first of the second are the host's own cell:
// there the all-reduce joins them in one step.
//
// No deadlock at depth 2, whatever the lengths of the segments: order all steps of all ranks by iteration, entry,
// phase, position, and then feed < pass < take. A step that waits for a slot waits for a step that stands earlier in
// this order; one that waits for room with two slots in between waits for the taker of the message before the last,
// which stands earlier too.
//
// Without rings, in one group, a round is summed an iteration after it is fed, and its sums are taken an iteration
// after that: a rank that is not running just now, as its core does something else, is no reason for the others to
// stop. Along rings that reach other hosts a round takes some iterations from each place to the next: several are under
// way at once, as many as a wire holds, and a rank whose turn on it comes later is no reason for the others of its host
// to send nothing. Each way then has the messages of so many more iterations under way, and the same order shows that
// there is no deadlock when there is room for these. Rounds go one by one where there is none, as a ring of many hosts
// has many messages an iteration, and where links have unlike numbers of them: cells of several entries.
class Grid {
 public:
  Grid(Builder& builder, const Shape& shape, const Hosts& hosts, bool segmentPerRank)
      : builder_(builder),
        hosts_(hosts),
        perRank_(segmentPerRank),
        lanes_(hosts.smallest()),
        host_(hosts.hostOf(builder.rank())),
        member_(hosts.memberOf(builder.rank())),
        members_(hosts.membersOf(host_)),
        exchanges_(exchangesOn(hosts, segmentPerRank)),
        hop_(hopFor(shape)) {}

  // The most entries that any cell has.
  int entries() const {
    if (!perRank_) return 1;
    int most = 0;
    for (int host = 0; host < hosts_.count(); ++host) most = std::max(most, hosts_.membersOf(host));
    return (most + lanes_ - 1) / lanes_;
  }

  // Whether two hosts exchange their sums instead of handing them around. A host of one rank would lend the other its
  // input, and add to it where that is its output.
  static bool exchangesOn(const Hosts& hosts, bool segmentPerRank) {
    return !segmentPerRank && hosts.count() == 2 && hosts.smallest() > 1;
  }

  // The smallest depth of links with which all ranks finish.
  int depth() const {
    if (hosts_.count() == 1) return perRank_ ? 2 : 4;
    const bool oneWay = exchanges_ || (perRank_ && hosts_.count() == 2);
    return (oneWay ? 1 : kDepthOfOne) + hop_ * messages();
  }

  // Of an all-reduce, all of it.
  void exchange() {
    feed(host_, 0);
    if (runsLane()) sumOfHost();
    lag_ = hop_;
    if (runsLane()) sumOfBoth();
    take(host_, 0);
  }

  void reduceScatter(int entry, bool thenGather) {
    const int count = hosts_.count();
    for (int k = 0; k < count; ++k) {
      const int target = (host_ + 2 * count - 1 - k) % count;
      lag_ = k * hop_;
      feed(target, entry);
      if (runsLane() && has(member_, target, entry)) pass(k, target, entry, thenGather);
    }
    if (thenGather) {
      take(host_, entry);
    } else if (ownsUnlaned(entry)) {
      builder_.at(builder_.rank()).fromRank(local(member_ % lanes_)).to(Operand::output()).lag(lag_);
    }
  }

  void gatherOwn(int entry) {
    lag_ = 0;
    if (ownsUnlaned(entry)) {
      auto step = builder_.at(builder_.rank()).from(Operand::input()).to(Operand::output());
      step.toRank(local(member_ % lanes_)).directWrite();
    }
    if (runsLane() && has(member_, host_, entry)) spreadOwn(entry);
    take(host_, entry);
  }

  void gatherOthers(int entry) {
    const int count = hosts_.count();
    for (int k = 1; k < count; ++k) {
      const int source = (host_ + count - k) % count;
      lag_ += hop_;
      if (runsLane() && has(member_, source, entry)) relay(source, entry, k < count - 1);
      take(source, entry);
    }
  }

 private:
  // Of each link along a ring, in an iteration, where no cell has several entries.
  int messages() const { return exchanges_ ? 1 : (hosts_.count() - 1) * (perRank_ ? 1 : 2); }
  int hopFor(const Shape& shape) const {
    const auto isElsewhere = [&](int group) { return group != shape.groupOf[0]; };
    const bool areSeveral = hosts_.count() > 1 && std::ranges::any_of(shape.groupOf, isElsewhere);
    if (!areSeveral || entries() > 1) return 0;
    return std::clamp((shape.depth - kDepthOfOne) / messages(), 0, kMostHop);
  }
  // Iterations from one hand-over of a round to the next within a host.
  int behind() const { return hosts_.count() == 1 ? 1 : 0; }
  bool runsLane() const { return member_ < lanes_; }
  int local(int member) const { return hosts_.rankOf(host_, member); }
  int neighbour(int by) const { return hosts_.rankOf((host_ + by + hosts_.count()) % hosts_.count(), member_); }

  // The member whose segment is that entry of the lane's cells, if segments belong to ranks.
  int ownerOf(int lane, int entry) const { return lane + entry * lanes_; }
  // Whether the own segment is that entry of a cell whose lane another member runs.
  bool ownsUnlaned(int entry) const { return !runsLane() && member_ / lanes_ == entry; }
  bool has(int lane, int host, int entry) const { return !perRank_ || ownerOf(lane, entry) < hosts_.membersOf(host); }
  int segmentOf(int lane, int host, int entry) const {
    if (exchanges_) return lane;
    return perRank_ ? hosts_.rankOf(host, ownerOf(lane, entry)) : lane * hosts_.count() + host;
  }

  // Lanes in an order that starts at a different one on every member, so that not all feed the same lane at once.
  template <class Visit>
  void forOtherLanes(int direction, Visit visit) const {
    for (int d = runsLane() ? 1 : 0; d < lanes_; ++d) visit((member_ % lanes_ + direction * d + lanes_) % lanes_);
  }

  void feed(int target, int entry) {
    forOtherLanes(+1, [&](int lane) {
      if (!has(lane, target, entry)) return;
      builder_.at(segmentOf(lane, target, entry)).from(Operand::input()).toRank(local(lane)).lag(lag_);
    });
  }

  // Adds what all members of this host have to what came along the ring.
  void pass(int k, int target, int entry, bool thenGather) {
    auto step = builder_.at(segmentOf(member_, target, entry));
    if (k > 0) step.fromRank(neighbour(-1));
    step.lag(lag_ + behind());
    for (int member = 0; member < members_; ++member) fromMember(step, member);
    if (k < hosts_.count() - 1) {
      step.toRank(neighbour(+1));
      return;
    }
    step.finalise();
    if (thenGather) {
      spread(step, member_);
    } else if (entry == 0) {
      step.to(Operand::output());
    } else {
      step.toRank(local(ownerOf(member_, entry))).directWrite();
    }
  }

  // Kept in the output meanwhile, where nobody else looks.
  void sumOfHost() {
    auto step = builder_.at(member_);
    for (int member = 0; member < members_; ++member) fromMember(step, member);
    step.to(Operand::output()).toRank(neighbour(+1));
  }

  // In the same order on both hosts, so that both have the same bits.
  void sumOfBoth() {
    auto step = builder_.at(member_).lag(lag_).finalise().directWrite();
    for (int host = 0; host < 2; ++host) {
      if (host == host_) {
        step.from(Operand::output());
      } else {
        step.fromRank(neighbour(+1));
      }
    }
    step.to(Operand::output());
    toMembers(step, member_);
  }

  void fromMember(Builder::Draft step, int member) {
    if (member == member_) {
      step.from(Operand::input());
    } else {
      step.fromRank(local(member));
    }
  }

  void spreadOwn(int entry) {
    auto step = builder_.at(segmentOf(member_, host_, entry));
    fromMember(step, ownerOf(member_, entry));
    spread(step, ownerOf(member_, entry));
  }

  void spread(Builder::Draft step, int owner) {
    step.to(Operand::output()).directWrite();
    if (hosts_.count() > 1) step.toRank(neighbour(+1));
    toMembers(step, owner);
  }

  void relay(int source, int entry, bool further) {
    auto step = builder_.at(segmentOf(member_, source, entry)).fromRank(neighbour(-1)).to(Operand::output());
    step.directWrite().lag(lag_);
    if (further) step.toRank(neighbour(+1));
    toMembers(step, member_);
  }

  void toMembers(Builder::Draft step, int except) {
    for (int d = 1; d < members_; ++d) {
      const int member = (member_ + d) % members_;
      if (member != except) step.toRank(local(member));
    }
  }

  void take(int source, int entry) {
    const int takeBehind = behind() * (perRank_ ? 1 : 2);
    forOtherLanes(-1, [&](int lane) {
      const bool mine = perRank_ && source == host_ && ownerOf(lane, entry) == member_;
      if (mine || !has(lane, source, entry)) return;
      builder_.at(segmentOf(lane, source, entry)).fromRank(local(lane)).to(Operand::output()).lag(lag_ + takeBehind);
    });
  }

  Builder& builder_;
  const Hosts& hosts_;
  bool perRank_;
  int lanes_, host_, member_, members_;
  bool exchanges_;
  int hop_;      // iterations that a round takes from one host to the next
  int lag_ = 0;  // of what comes next
};

}  // namespace

Schedule buildOnGrid(const Shape& shape, int rank, const Hosts& hosts) {
  const bool perRank = shape.collective != Collective::kAllReduce && shape.collective != Collective::kBarrier;
  const bool exchanges = Grid::exchangesOn(hosts, perRank);
  const int segments = perRank ? shape.size : hosts.smallest() * (exchanges ? 1 : hosts.count());
  Builder builder(shape, rank, perRank ? SegmentMap::kPerRank : SegmentMap::kSplit, segments);
  Grid grid(builder, shape, hosts, perRank);
  if (exchanges) {
    grid.exchange();
    return builder.finish(grid.depth());
  }
  for (int entry = 0; entry < grid.entries(); ++entry) {
    if (!perRank || reduces(shape.collective)) {
      grid.reduceScatter(entry, !perRank);
    } else {
      grid.gatherOwn(entry);
    }
    if (!perRank || !reduces(shape.collective)) grid.gatherOthers(entry);
  }
  return builder.finish(grid.depth());
}

void addPartners(Workload& work, double bytes, const Scale& scale) {
  const int corners = Cube(scale.ranks).corners();
  if (corners == scale.ranks) return;
  const double aside = 1.0 - double(corners) / scale.ranks;
  work.steps += 2;
  for (Load* load : {&work.busiest, &work.mean}) {
    const double share = load == &work.mean ? aside : 1;
    load->sent += share * bytes, load->received += share * bytes, load->combined += share * bytes;
    load->messages += share;
  }
  work.filling += std::min<double>(bytes, scale.slotBytes);
}

}  // namespace tutti::schedule
