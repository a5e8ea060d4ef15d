// The tree's way of giving everyone everyone's blob: shares go up, the table comes down. Joining uses it too, with the
// ranks' records as blobs, as exchange #0.
#include <tuple>
#include <utility>

#include "control/control_node.h"
#include "join/tree.h"

namespace tutti::control {

void ControlNode::startGather(uint64_t sequence, std::span<const std::byte> blob) {
  if (blob.size() > kMostShareBytes)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} bytes are too many for an exchange: at most {} of a rank",
                                                         blob.size(), kMostShareBytes));
  reactor_.post([this, sequence, mine = Bytes(blob.begin(), blob.end())] {
    gathering_.addOwn(sequence, mine);
    checkShares();
    passUp(sequence);
  });
}

void ControlNode::onShare(int side, const Bytes& payload) {
  Reader in(payload);
  const auto sequence = in.value<uint64_t>();
  gathering_.addChild(sequence, static_cast<Gathering::Source>(side), in.block());
  checkShares();
  passUp(sequence);
}

void ControlNode::passUp(uint64_t sequence) {
  // While joining, the children may be here before this rank knows its own place.
  if (!parent_ && rank() != 0) return;
  const auto entries = gathering_.take(sequence);
  if (!entries) return mailbox_.noteMissing(missingText(sequence));
  sharesSent_ = sequence + 1;
  if (rank() != 0) {
    mailbox_.noteMissing("; this rank's own part of the tree is complete");
    return parent_->send(Kind::kGatherUp, Writer().value(sequence).block(*entries).take());
  }
  Writer table;
  table.value(sequence);
  for (const Bytes& blob : Gathering::toTable(*entries, size())) table.block(blob);
  onTable(std::make_shared<const Bytes>(table.take()));
}

// Read before it is passed on: a table that cannot be is its sender's, and not that of a rank in between.
void ControlNode::onTable(const std::shared_ptr<const Bytes>& payload) {
  Reader in(*payload);
  const auto sequence = in.value<uint64_t>();
  std::vector<Bytes> table;
  for (int r = 0; r < size(); ++r) {
    const auto blob = in.block();
    table.emplace_back(blob.begin(), blob.end());
  }
  for (const Child& child : children_)
    if (child.line) child.line->send(Kind::kGatherDown, payload);
  if (sequence != kJoinSequence) return mailbox_.tableCame(sequence, std::move(table));
  joinTable_ = std::move(table);
  enter();
}

// The table came through the hands of other ranks; of what it should be, the root has heard from each rank itself.
void ControlNode::requireUnchanged(const std::vector<Bytes>& table) const {
  std::vector<Digest> digests;
  for (const Bytes& blob : table) digests.push_back(digestOf(blob));
  if (digestOfAll(digests) != *digest_)
    throw Error(ErrorCode::kRemote, "a rank in the tree has changed the table of all ranks");
}

namespace {

// So what cannot be read is that rank's own word.
Record recordOf(int rank, const Bytes& blob) try {
  Record record = decodeRecord(blob);
  if (record.who.rank != rank)
    throw Error(ErrorCode::kRemote, "a rank in the table of all ranks says that it is another");
  return record;
} catch (const Error& e) {
  throw Error(ErrorCode::kRemote, fmt::format("rank {} says of itself what cannot be understood: {}", rank, e.what()));
}

}  // namespace

void ControlNode::requireKnown(const std::vector<RankAddress>& people) const {
  if (people[static_cast<size_t>(rank())].endpoint.key != key_.open)
    throw Error(ErrorCode::kRemote, "the table of all ranks has somebody else in this rank's place");
  for (const Child& child : children_)
    if (child.line && child.who.endpoint.key != people[static_cast<size_t>(child.who.rank)].endpoint.key)
      throw Error(ErrorCode::kRemote, "a rank in the tree is not the one that it says it is");
}

std::pair<std::vector<RankAddress>, std::vector<Bytes>> ControlNode::readRecords(
    const std::vector<Bytes>& table) const {
  requireUnchanged(table);
  std::vector<RankAddress> people;
  std::vector<Bytes> infos;
  for (int r = 0; r < size(); ++r) {
    Record record = recordOf(r, table[static_cast<size_t>(r)]);
    people.push_back(std::move(record.who));
    infos.push_back(std::move(record.info));
  }
  requireKnown(people);
  return {std::move(people), std::move(infos)};
}

// Joined, when table and digest are there: from here on everyone is known, and any thread may look.
void ControlNode::enter() {
  if (joined() || joining_.over() || joinTable_.empty() || !digest_) return;
  try {
    std::tie(people_, infos_) = readRecords(std::exchange(joinTable_, {}));
  } catch (const Error& e) {
    return joining_.fail(e.code(), e.what());
  }
  here_ = LocalRanks::of(*digest_);
  here_->add(rank());
  joining_.succeed();
  mailbox_.joined();
  takeEarlyStreams();
  if (early_) learn(*early_, nullptr);
}

// An exchange that waits for someone who has left, in good order, would wait for ever.
void ControlNode::checkShares() {
  const auto absent = [&](Gathering::Source source, bool left, const RankAddress& who) {
    if (!left || flooded_) return;
    if (const auto sequence = gathering_.waitingFor(source))
      learn({who.rank, Stop::kError, ErrorCode::kRemote,
             fmt::format("{} {} before set-up exchange #{}, which others have begun", describe(who),
                         ended_.contains(who.rank) ? kEndedWithProcess : "left", *sequence)},
            nullptr);
  };
  absent(Gathering::Source::kSelf, ownerLeft_, self_);
  absent(Gathering::Source::kFirstChild, children_[0].left, children_[0].who);
  absent(Gathering::Source::kSecondChild, children_[1].left, children_[1].who);
}

std::string ControlNode::missingText(uint64_t sequence) const {
  if (sequence < sharesSent_) return {};
  const auto absent = gathering_.missing(sequence);
  if (absent.empty()) return {};
  std::string text;
  for (const int who : absent) {
    text += (text.empty() ? "" : " and ") + nameRanks({who});
    if (who != rank() && tree::childOf(who, 0) < size()) text += ", which speaks for those below it too";
  }
  return fmt::format("; rank {} has not heard from {}", rank(), text);
}

}  // namespace tutti::control
