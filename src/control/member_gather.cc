// The tree's way of giving everyone everyone's blob: shares go up, the table comes down. Joining uses it too, with the
// ranks' records as blobs, as exchange #0.
#include <utility>

#include "control/member.h"
#include "control/tree.h"

namespace tutti::control {

void Member::startGather(uint64_t sequence, std::span<const std::byte> blob) {
  if (blob.size() > kMostShareBytes)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} bytes are too many for an exchange: at most {} of a rank",
                                                         blob.size(), kMostShareBytes));
  reactor_.post([this, sequence, mine = Bytes(blob.begin(), blob.end())] {
    gathering_.addOwn(sequence, mine);
    checkShares();
    passUp(sequence);
  });
}

void Member::onShare(int side, const Bytes& payload) {
  Reader in(payload);
  const auto sequence = in.value<uint64_t>();
  gathering_.addChild(sequence, static_cast<Gathering::Source>(side), in.block());
  checkShares();
  passUp(sequence);
}

void Member::passUp(uint64_t sequence) {
  // While joining, the children may be here before this rank knows its own place.
  if (!parent_ && rank() != 0) return;
  const auto entries = gathering_.take(sequence);
  if (!entries) return desk_.noteMissing(missingText(sequence));
  sharesSent_ = sequence + 1;
  if (rank() != 0) {
    desk_.noteMissing("; this rank's own part of the tree is complete");
    return parent_->send(Kind::kGatherUp, Writer().value(sequence).block(*entries).take());
  }
  Writer table;
  table.value(sequence);
  for (const Bytes& blob : Gathering::toTable(*entries, size())) table.block(blob);
  onTable(std::make_shared<const Bytes>(table.take()));
}

void Member::onTable(const std::shared_ptr<const Bytes>& payload) {
  for (const Child& child : children_)
    if (child.line) child.line->send(Kind::kGatherDown, payload);
  Reader in(*payload);
  const auto sequence = in.value<uint64_t>();
  std::vector<Bytes> table;
  for (int r = 0; r < size(); ++r) {
    const auto blob = in.block();
    table.emplace_back(blob.begin(), blob.end());
  }
  if (sequence != kJoinSequence) return desk_.tableCame(sequence, std::move(table));
  joinTable_ = std::move(table);
  enter();
}

// What is wrong with the table that came through the hands of other ranks; nullptr: nothing.
const char* Member::wrongIn(const std::vector<Person>& people, const Digest& records) const {
  for (int r = 0; r < size(); ++r)
    if (people[static_cast<size_t>(r)].rank != r) return "a rank in the table of all ranks says that it is another";
  if (records != *digest_) return "a rank in the tree has changed the table of all ranks";
  if (people[static_cast<size_t>(rank())].endpoint.key != key_.open)
    return "the table of all ranks has somebody else in this rank's place";
  for (const Child& child : children_)
    if (child.line && child.person.endpoint.key != people[static_cast<size_t>(child.person.rank)].endpoint.key)
      return "a rank in the tree is not the one that it says it is";
  return nullptr;
}

// Joined, when table and digest are there: from here on everyone is known, and any thread may look.
void Member::enter() {
  if (joined() || joining_.over() || joinTable_.empty() || !digest_) return;
  std::vector<Person> people;
  std::vector<Bytes> cards;
  std::vector<Digest> digests;
  for (const Bytes& blob : std::exchange(joinTable_, {})) {
    Record record = decodeRecord(blob);
    people.push_back(std::move(record.person));
    cards.push_back(std::move(record.card));
    digests.push_back(digestOf(blob));
  }
  if (const char* wrong = wrongIn(people, digestOfAll(digests))) return joining_.fail(ErrorCode::kRemote, wrong);
  people_ = std::move(people);
  cards_ = std::move(cards);
  here_ = LocalRanks::of(*digest_);
  here_->add(rank());
  joining_.succeed();
  desk_.joined();
  takeEarlyStreams();
  if (early_) learn(*early_, nullptr);
}

// An exchange that waits for someone who has left, in good order, would wait for ever.
void Member::checkShares() {
  const auto absent = [&](Gathering::Source source, bool left, const Person& who) {
    if (!left || desk_.failed()) return;
    if (const auto sequence = gathering_.waitingFor(source))
      learn({who.rank, Stop::kError, ErrorCode::kRemote,
             fmt::format("{} left before set-up exchange #{}, which others have begun", describe(who), *sequence)},
            nullptr);
  };
  absent(Gathering::Source::kSelf, ownerLeft_, self_);
  absent(Gathering::Source::kFirstChild, children_[0].left, children_[0].person);
  absent(Gathering::Source::kSecondChild, children_[1].left, children_[1].person);
}

std::string Member::missingText(uint64_t sequence) const {
  if (sequence < sharesSent_) return {};
  const auto absent = gathering_.missing(sequence);
  return absent.empty() ? std::string() : fmt::format("; rank {} has not heard from {}", rank(), nameRanks(absent));
}

}  // namespace tutti::control
