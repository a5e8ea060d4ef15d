// How the two ends of an edge come to use the same transport.
//
// Each end first says what it could use (hello). The agreed list is the lower rank's order without what the higher rank
// lacks, so both derive the same. Then attempt after attempt: both open candidate k, test the connection, and tell each
// other their verdict, exactly one per attempt and end. Both good: done. Otherwise both clear away what is left of the
// attempt and go on to candidate k + 1.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/deadline_names.h"
#include "base/error.h"
#include "base/plain_text.h"
#include "link/negotiation_channel.h"
#include "link/registry.h"
#include "link/self_test.h"
#include "process/descriptors.h"
#include "process/log.h"

namespace tutti::link {
namespace {

// What a peer may say: in words, of how many transports, and of how many streams for one.
constexpr size_t kMostReason = 4096, kMostNames = 64, kMostStreams = 8;

struct Hello {
  uint32_t slotBytes = 0, depth = 0;
  std::vector<std::string> names;
};

struct Verdict {
  bool good = false;
  StreamsAsked asked;
  std::string reason;
};

Hello readHello(Reader& in) {
  Hello hello{in.value<uint32_t>(), in.value<uint32_t>(), {}};
  while (!in.empty() && hello.names.size() < kMostNames) hello.names.push_back(in.text());
  return hello;
}

Verdict readVerdict(Reader& in) {
  Verdict verdict;
  verdict.good = in.value<bool>();
  for (auto& count : verdict.asked.counts) {
    count = in.value<uint8_t>();
    if (count > kMostStreams) throw Error(ErrorCode::kRemote, fmt::format("{} streams for one transport", count));
  }
  verdict.asked.refused = in.value<bool>();
  verdict.reason = plainText(in.text(), kMostReason);
  return verdict;
}

constexpr const char* kPeerGaveUp = "the peer gave it up";

// Why an attempt failed, told from this end. An end that only followed the other has nothing to add.
std::string reasonOf(const Verdict& own, const Verdict& peers) {
  const bool here = !own.good && own.reason != kPeerGaveUp;
  const bool there = !peers.good && peers.reason != kPeerGaveUp;
  if (!there) return own.reason;
  return here ? fmt::format("{}; at the peer: {}", own.reason, peers.reason)
              : fmt::format("at the peer: {}", peers.reason);
}

// What one candidate needs while it is tried. Members go in reverse: the Setup before the line that it talks over.
struct Attempt {
  Attempt(OobChannel& oob, uint32_t number, Transport& of, Deadline until)
      : line(oob, number), transport(of), deadline(until) {}
  NegotiationChannel line;
  Transport& transport;
  Deadline deadline;
  std::unique_ptr<Setup> setup;
  std::unique_ptr<Connection> connection;
  std::optional<SelfTest> test;
  std::optional<Verdict> own;
  std::optional<Verdict> peers;

  std::string state() const {
    if (own) return own->good ? "waiting for the peer's verdict" : own->reason;
    return test ? test->state() : "still connecting";
  }
};

}  // namespace

struct EdgeSetup::State {
  State(const Registry& from, const Edge& of, std::unique_ptr<OobChannel> over, std::chrono::milliseconds given)
      : registry(from), edge(of), oob(std::move(over)), patience(given) {}

  void sayHello();
  void readMail();
  void deliver(Bytes message);
  void agree();
  void startAttempt();
  void work();
  void tryToStand();
  void finish(bool good, const std::string& reason);
  bool concluded();
  void moveOn();
  std::string peerName() const;
  [[noreturn]] void giveUp(ErrorCode code, const std::string& what) const;
  [[noreturn]] void nothingAllowed() const;

  const Registry& registry;
  Edge edge;
  std::unique_ptr<OobChannel> oob;
  std::chrono::milliseconds patience;
  Deadline deadline = Deadline::never();  // once the peer has answered

  std::vector<Transport*> own;
  std::vector<std::string> failures;  // "name: reason" for each transport that was left out or has failed
  std::optional<Hello> peerHello;
  std::vector<Transport*> agreed;
  uint32_t next = 0;                 // candidate to try
  std::map<uint32_t, Spoken> heard;  // of the peer, by attempt
  std::optional<Attempt> attempt;
  // The peer may be one attempt ahead, not more: its mail waits here until this end begins the same attempt.
  std::map<uint32_t, std::vector<Bytes>> earlyBlobs;
  std::map<uint32_t, Verdict> verdicts;
};

std::string EdgeSetup::State::peerName() const {
  return fmt::format("rank {} (host {}, pid {}) on channel {}", edge.peer, edge.peerInfo.hostName, edge.peerInfo.pid,
                     edge.channel);
}

void EdgeSetup::State::giveUp(ErrorCode code, const std::string& what) const {
  std::vector<std::string> said = failures;
  if (attempt) said.push_back(fmt::format("{}: {}", attempt->transport.name(), attempt->state()));
  const std::string text =
      fmt::format("rank {} {} {}. {}", edge.self, what, peerName(),
                  said.empty() ? std::string("No transport was tried yet: the peer has not answered")
                               : fmt::format("Tried: {}", fmt::join(said, "; ")));
  throw Error(code, text + lackOfDescriptors(text));
}

// Nothing has failed: what would do has been left out, or is another place's.
void EdgeSetup::State::nothingAllowed() const {
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("rank {} may use no transport to {} ({}): allow one that reaches it, such as tcp", edge.self,
                          peerName(), fmt::join(failures, "; ")));
}

void EdgeSetup::State::sayHello() {
  own = registry.candidates(edge.selfInfo, edge.peerInfo, &failures);
  Writer out;
  out.value(EdgeMessage::kHello).value(edge.slotBytes).value(edge.depth);
  for (const Transport* transport : own) out.text(transport->name());
  oob->put(out.take());
}

void EdgeSetup::State::readMail() {
  while (auto message = oob->poll()) deliver(std::move(*message));
}

void EdgeSetup::State::deliver(Bytes message) {
  Reader in(message);
  const auto kind = in.oneOf(EdgeMessage::kHello, EdgeMessage::kVerdict);
  if (kind == EdgeMessage::kHello && !peerHello) {
    peerHello = readHello(in);
    deadline = Deadline::in(patience);
    return agree();
  }
  const auto number = in.value<uint32_t>();
  const auto refuse = [&](const char* what) {
    throw Error(ErrorCode::kRemote, fmt::format("{} sent {}", peerName(), what));
  };
  if (number > next) refuse("more than a set-up of a link takes");
  if (kind == EdgeMessage::kBlob) {
    const auto blob = in.block();
    if (!heard[number].isModest(blob.size())) refuse("more than a set-up of a link takes");
    if (attempt && attempt->line.attempt() == number) return attempt->line.arrived({blob.begin(), blob.end()});
    if (number >= next) earlyBlobs[number].emplace_back(blob.begin(), blob.end());
  } else if (kind == EdgeMessage::kVerdict) {
    verdicts[number] = readVerdict(in);
  } else {
    refuse("a message that belongs to no set-up of a link");
  }
}

void EdgeSetup::State::agree() {
  if (peerHello->slotBytes != edge.slotBytes || peerHello->depth != edge.depth)
    giveUp(ErrorCode::kInvalidUsage,
           fmt::format("has {} slots of {} bytes for a link, but {} of {} are wanted by (give all ranks the same)",
                       edge.depth, edge.slotBytes, peerHello->depth, peerHello->slotBytes));
  const auto& names = peerHello->names;
  std::ranges::copy_if(own, std::back_inserter(agreed),
                       [&](Transport* one) { return std::ranges::find(names, one->name()) != names.end(); });
  if (edge.self > edge.peer)
    std::ranges::stable_sort(agreed, {},
                             [&](Transport* one) { return std::ranges::find(names, one->name()) - names.begin(); });
  for (const Transport* one : own)
    if (std::ranges::find(agreed, one) == agreed.end())
      failures.push_back(fmt::format("{}: the peer can not or may not use it", one->name()));
}

void EdgeSetup::State::startAttempt() {
  if (agreed.empty()) nothingAllowed();
  if (next == agreed.size()) giveUp(ErrorCode::kSystem, "found no transport that works to");
  // A candidate that hangs must leave time for those after it.
  const auto left = static_cast<int>(agreed.size() - next);
  attempt.emplace(*oob, next, *agreed[next], left == 1 ? deadline : Deadline::in(deadline.left() / left));
  for (auto& blob : earlyBlobs[next]) attempt->line.arrived(std::move(blob));
  earlyBlobs.erase(next);
  ++next;
}

// Opens, connects and tests. Whatever is thrown on the way is this end's verdict on the candidate.
void EdgeSetup::State::work() {
  if (attempt->own) return;
  try {
    if (verdicts.contains(attempt->line.attempt()) && !verdicts[attempt->line.attempt()].good)
      return finish(false, kPeerGaveUp);
    tryToStand();
    if (!attempt->own && attempt->deadline.passed()) finish(false, "took too long, " + attempt->state());
  } catch (const std::exception& failure) {
    finish(false, failure.what());
  }
}

void EdgeSetup::State::tryToStand() {
  if (!attempt->setup && !attempt->connection) attempt->setup = attempt->transport.open(edge, attempt->line);
  if (!attempt->connection) {
    attempt->connection = attempt->setup->advance();
    if (!attempt->connection) return;
    attempt->setup.reset();
    const SendEnd& send = attempt->connection->send;
    attempt->test.emplace(*attempt->connection, edge.self, edge.peer,
                          send.driver == nullptr ? send.fifo.depth : edge.depth);
  }
  if (attempt->test->advance()) finish(true, "");
}

void EdgeSetup::State::finish(bool good, const std::string& reason) {
  attempt->own = Verdict{good, attempt->line.asked(), reason};
  Writer out;
  out.value(EdgeMessage::kVerdict).value(attempt->line.attempt()).value(static_cast<uint8_t>(good));
  for (const auto count : attempt->own->asked.counts) out.value(count);
  out.value(static_cast<uint8_t>(attempt->own->asked.refused));
  oob->put(out.text(reason).take());
  if (good) return;
  attempt->test.reset();
  attempt->connection.reset();
  attempt->setup.reset();
}

// True once both verdicts are known.
bool EdgeSetup::State::concluded() {
  if (!attempt->own) return false;
  if (const auto found = verdicts.find(attempt->line.attempt()); found != verdicts.end()) {
    attempt->peers = std::move(found->second);
    verdicts.erase(found);
  }
  return attempt->peers.has_value();
}

// After a failed attempt: its streams are settled, its reason is kept, the next candidate is due.
void EdgeSetup::State::moveOn() {
  attempt->test.reset();
  attempt->connection.reset();
  attempt->setup.reset();
  if (!attempt->line.settle(attempt->peers->asked)) return;
  const std::string reason = reasonOf(*attempt->own, *attempt->peers);
  failures.push_back(fmt::format("{}: {}", attempt->transport.name(), reason));
  const std::string text = fmt::format(
      "{} does not work from rank {} to {}: {}; {}", attempt->transport.name(), edge.self, peerName(), reason,
      next < agreed.size() ? fmt::format("trying {}", agreed[next]->name()) : "nothing is left to try");
  // Both ends know the same, and other links may fail of the same: one says it, once.
  if (edge.self < edge.peer && registry.isNews(failures.back()))
    log::warn("{} (of further links that fail so, TUTTI_DEBUG=info tells)", text);
  else
    log::info("{}", text);
  attempt.reset();
}

EdgeSetup::EdgeSetup(const Registry& registry, const Edge& edge, std::unique_ptr<OobChannel> oob,
                     std::chrono::milliseconds patience)
    : state_(std::make_unique<State>(registry, edge, std::move(oob), patience)) {
  state_->sayHello();
}

EdgeSetup::~EdgeSetup() = default;

const Edge& EdgeSetup::edge() const noexcept { return state_->edge; }

std::unique_ptr<Connection> EdgeSetup::advance() {
  State& state = *state_;
  // Looked at before the work, so that an attempt that ran out of the same time has said so by then.
  const bool expired = state.deadline.passed();
  state.readMail();
  if (state.attempt) {
    state.work();
    if (state.concluded()) {
      if (state.attempt->own->good && state.attempt->peers->good) {
        log::info("{} to {}{}", state.attempt->transport.name(), state.peerName(), state.attempt->connection->remark);
        return std::move(state.attempt->connection);
      }
      state.moveOn();
    }
  }
  if (expired)
    state.giveUp(ErrorCode::kTimeout,
                 fmt::format("did not get a link within {} ms, its {}, to", state.patience.count(), kConnectDeadline));
  if (state.peerHello && !state.attempt) state.startAttempt();
  return nullptr;
}

}  // namespace tutti::link
