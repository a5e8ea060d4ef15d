#include "interleavings/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/ticket_queue.h"
#include "interleavings/program.h"
#include "team/call.h"

namespace tutti::interleavings {
namespace {

constexpr int kMessageChannel = 255;

// The links of all ranks, made when they are first asked for.
class Network {
 public:
  Network(Chance& chance, const Program& program)
      : chance_(chance),
        program_(program),
        weather_{&chance},
        memory_(2 * sizeof(int32_t) * kMostElements * (program.lends ? kTimesLonger : 1) * size_t(program.ranks)) {
    for (int i = 0; i < program.ranks * program.ranks; ++i) mapped_.push_back(chance.percent(30));
  }
  Edge& edge(int communicator, int one, int other, int channel) {
    const int low = std::min(one, other), high = std::max(one, other);
    auto& edge = edges_[{communicator, low, high, channel}];
    if (!edge) {
      const auto kind = low == high                                                 ? Edge::Kind::kSelf
                        : mapped_[static_cast<size_t>(low * program_.ranks + high)] ? Edge::Kind::kMapped
                                                                                    : Edge::Kind::kStream;
      const size_t capacity = chance_.of<size_t>({16, 64, program_.slotBytes, size_t{4} * program_.slotBytes});
      edge = std::make_unique<Edge>(kind, low, high, program_.slotBytes, program_.depth, weather_, capacity);
    }
    return *edge;
  }
  Weather& weather() noexcept { return weather_; }
  // What all ranks read, and what all write: nobody looks at it.
  std::byte* input() noexcept { return memory_.data(); }
  std::byte* output() noexcept { return memory_.data() + memory_.size() / 2; }
  uint64_t bytesMoved() const {
    uint64_t sum = 0;
    for (const auto& [key, edge] : edges_) sum += edge->bytesMoved();
    return sum;
  }

 private:
  Chance& chance_;
  const Program& program_;
  Weather weather_;
  std::vector<std::byte> memory_;
  std::vector<bool> mapped_;  // [low * ranks + high]
  std::map<std::tuple<int, int, int, int>, std::unique_ptr<Edge>> edges_;
};

// The queues in which the calls of one rank on one communicator take turns.
struct TicketQueues {
  explicit TicketQueues(int ranks) : sends(static_cast<size_t>(ranks)), receives(static_cast<size_t>(ranks)) {}
  comm::TicketQueue collectives;
  std::vector<comm::TicketQueue> sends, receives;
  comm::TicketQueue& of(const comm::Call& call) {
    if (call.collective != Collective::kSendRecv) return collectives;
    return (call.sends ? sends : receives)[static_cast<size_t>(call.root)];
  }
};

// One rank's part of an item, or of a message one end, as the engine sees it. What comm::Task does, without a
// communicator.
class Part {
 public:
  Part(const Program& program, const Item& item, int rank, bool sends, TicketQueues& queues, Network& network)
      : item_(item), rank_(rank), call_(callOf(item, rank, sends, network)), queue_(&queues.of(call_)) {
    ticket_ = queue_->take();
    schedule_ = buildFor(program);
    const size_t chunk = program.slotBytes / schedule_.maxSpan;
    bindings_.resize(static_cast<size_t>(item.channels));
    lanes_.resize(bindings_.size());
    for (uint32_t channel = 0; channel < lanes_.size(); ++channel) {
      engine::Binding& binding = bindings_[channel];
      bind(binding, static_cast<int>(channel), network);
      if (program.lends) binding.singleCopy = link::SingleCopy::kWhereFaster;
      binding.prepare(program.slotBytes);
      works_.push_back(comm::toWork(call_, ticket_, schedule_, chunk, channel, static_cast<uint32_t>(lanes_.size())));
    }
  }

  // True when it is done. Throws std::string.
  bool advance(bool& moved) {
    if (!started_ && !queue_->isTurn(ticket_)) return false;
    if (!std::exchange(started_, true))
      for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].start(bindings_[i], works_[i]);
    bool all = true;
    for (engine::Lane& lane : lanes_) {
      const auto state = lane.run(moved);
      if (state == engine::LaneState::kFailed) throw describe() + ": its lane failed";
      all = all && state == engine::LaneState::kDone;
    }
    if (all) queue_->pass(ticket_);
    return all;
  }

  std::string describe() const {
    std::string text =
        fmt::format("rank {}: {} on communicator {}", rank_, call_.describe(ticket_), item_.communicator);
    if (!started_) return text + " waits for its turn";
    for (const engine::Lane& lane : lanes_) text += fmt::format(", waits for rank {}", lane.waitingFor());
    return text;
  }

 private:
  static comm::Call callOf(const Item& item, int rank, bool sends, Network& network) {
    comm::Call call;
    call.collective = item.collective;
    call.type = item.collective == Collective::kBarrier ? DataType::kInt8 : DataType::kInt32;
    call.root = item.collective == Collective::kSendRecv ? (sends ? item.to : item.from) : item.root;
    call.sends = sends;
    call.send = (item.inPlace >> rank & 1) != 0 ? network.output() : network.input();
    call.recv = network.output();
    call.count = item.count;
    if (item.collective == Collective::kAllToAllV) call.tables = tablesOfPairs(item, static_cast<size_t>(rank));
    if (hasRoot(item.collective) && countsArePrivate(item.collective))
      call.tables = tablesOfRoot(item, static_cast<size_t>(rank));
    return call;
  }

  static std::shared_ptr<const comm::Tables> tablesOfPairs(const Item& item, size_t rank) {
    auto tables = std::make_shared<comm::Tables>();
    tables->inputCounts = item.counts[rank];
    for (const auto& row : item.counts) tables->outputCounts.push_back(row[rank]);
    tables->outputCounts[rank] = tables->inputCounts[rank];
    tables->inputOffsets.resize(item.counts.size());
    tables->outputOffsets.resize(item.counts.size());
    return tables;
  }

  // The root has all counts, every other rank its own.
  static std::shared_ptr<const comm::Tables> tablesOfRoot(const Item& item, size_t rank) {
    auto tables = std::make_shared<comm::Tables>();
    const auto root = static_cast<size_t>(item.root);
    const bool gathers = item.collective == Collective::kGatherV;
    for (size_t r = 0; r < item.counts.size(); ++r)
      tables->outputCounts.push_back(r != rank && rank != root ? 0
                                     : gathers                 ? item.counts[r][root]
                                                               : item.counts[root][r]);
    if (rank == root) (gathers ? tables->outputOffsets : tables->inputOffsets).resize(item.counts.size());
    return tables;
  }

  schedule::Schedule buildFor(const Program& program) const {
    if (item_.collective != Collective::kSendRecv)
      return schedule::build(item_.algorithm, program.shapeOf(item_), rank_);
    return call_.sends ? schedule::buildSend(rank_, program.ranks, call_.root)
                       : schedule::buildReceive(rank_, program.ranks, call_.root);
  }

  void bind(engine::Binding& binding, int channel, Network& network) const {
    if (item_.collective == Collective::kSendRecv) channel = kMessageChannel;
    binding.schedule = &schedule_;
    for (const int peer : schedule_.inPeers)
      binding.ins.push_back(&network.edge(item_.communicator, rank_, peer, channel).recv(rank_));
    for (const int peer : schedule_.outPeers)
      binding.outs.push_back(&network.edge(item_.communicator, rank_, peer, channel).send(rank_));
  }

  const Item& item_;
  int rank_;
  comm::Call call_;
  comm::TicketQueue* queue_;
  uint64_t ticket_ = 0;
  schedule::Schedule schedule_;
  std::vector<engine::Binding> bindings_;
  std::vector<engine::LaneWork> works_;
  std::vector<engine::Lane> lanes_;
  bool started_ = false;
};

// A thread of a rank: what it runs side by side, in the order in which that was queued.
using Batch = std::vector<std::unique_ptr<Part>>;
using Thread = std::deque<Batch>;

class Rank {
 public:
  Rank(const Program& program, int rank, Network& network)
      : program_(program), rank_(rank), network_(network), threads_(static_cast<size_t>(program.streams) + 1) {
    for (int i = 0; i < program.communicators; ++i) queues_.emplace_back(program.ranks);
  }

  // One turn of one thread. Thread 0 makes the calls, and waits for those that it runs itself.
  void turn(size_t thread, bool& moved) {
    Thread& queue = threads_[thread];
    if (queue.empty()) {
      if (thread == 0 && next_ < program_.groups.size()) call(program_.groups[next_++]), moved = true;
      return;
    }
    std::erase_if(queue.front(), [&](auto& part) { return part->advance(moved) && (moved = true); });
    if (queue.front().empty()) queue.pop_front();
  }
  size_t threads() const noexcept { return threads_.size(); }
  bool done() const {
    return next_ == program_.groups.size() && std::ranges::all_of(threads_, [](auto& queue) { return queue.empty(); });
  }
  std::string describe() const {
    std::string text;
    for (const Thread& queue : threads_)
      if (!queue.empty())
        for (const auto& part : queue.front()) text += "\n  " + part->describe();
    return text;
  }

 private:
  void call(const std::vector<Item>& group) {
    std::vector<Batch> batches(threads_.size());
    for (const Item& item : group)
      for (const bool sends : {true, false})
        if (item.involves(rank_, sends))
          batches[static_cast<size_t>(item.stream)].push_back(std::make_unique<Part>(
              program_, item, rank_, sends, queues_[static_cast<size_t>(item.communicator)], network_));
    for (size_t i = 0; i < batches.size(); ++i)
      if (!batches[i].empty()) threads_[i].push_back(std::move(batches[i]));
  }

  const Program& program_;
  int rank_;
  Network& network_;
  std::deque<TicketQueues> queues_;  // of each communicator
  std::vector<Thread> threads_;
  size_t next_ = 0;
};

class Job {
 public:
  explicit Job(uint64_t seed) : chance_(seed), program_(drawProgram(chance_)), network_(chance_, program_) {
    for (int rank = 0; rank < program_.ranks; ++rank) ranks_.emplace_back(program_, rank, network_);
  }

  // First as chance wants; then with streams that move all they can, and every thread in turn, so that whoever stands
  // still now stands still for ever.
  Result run() {
    Result result;
    for (size_t left = chance_.of<size_t>({100, 1'000, 10'000}); left > 0 && !done(); --left, ++result.turns) turn();
    network_.weather().fair = true;
    while (!done() && !result.trouble) {
      if (sweep(result.turns)) continue;
      result.hangs = true;
      result.trouble = "nothing moves any more:" + describe();
    }
    return result;
  }

 private:
  void turn() {
    Rank& rank = ranks_[chance_.below(ranks_.size())];
    bool moved = false;
    rank.turn(chance_.below(rank.threads()), moved);
  }
  bool sweep(uint64_t& turns) {
    const uint64_t before = network_.bytesMoved();
    bool moved = false;
    for (Rank& rank : ranks_)
      for (size_t thread = 0; thread < rank.threads(); ++thread, ++turns) rank.turn(thread, moved);
    return moved || network_.bytesMoved() != before;
  }
  bool done() const {
    return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.done(); });
  }
  std::string describe() const {
    std::string text;
    for (const Rank& rank : ranks_) text += rank.describe();
    return text;
  }

  Chance chance_;
  Program program_;
  Network network_;
  std::deque<Rank> ranks_;
};

}  // namespace

Result runSchedule(uint64_t seed) {
  try {
    return Job(seed).run();
  } catch (const std::string& trouble) {
    return {trouble, false, 0};
  }
}

}  // namespace tutti::interleavings
