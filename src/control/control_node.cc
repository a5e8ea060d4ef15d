#include "control/control_node.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "join/tree.h"
#include "process/log.h"

namespace tutti::control {
namespace {

// Of a rank whose owner has left, when its part of the tree goes as well.
constexpr const char* kLeftEarly = " has left in good order, and its process ended before the others were done";

}  // namespace

ControlNode::ControlNode(const JoinRequest& request)
    : request_(request),
      listener_(reactor_, listenRequest(),
                [this](const std::shared_ptr<Line>& line, Frame& first) { arrived(line, first); }),
      heartbeat_(reactor_, request_.heartbeat),
      joining_(reactor_, heartbeat_, request_, self_, key_,
               {[this](const Secret& secret) { learned(secret); },
                [this](const Digest& digest) {
                  digest_ = digest;
                  enter();
                },
                [this](const std::shared_ptr<Line>& line, const RankAddress& parent) { placed(line, parent); },
                [this](ErrorCode code, const std::string& text) { joinFailed(code, text); },
                [this] { return missingText(kJoinSequence); }}),
      streams_(reactor_, mailbox_, request.rank, encryptionOf(request_),
               [this](const Mail& mail) { route(encode(mail)); }),
      gathering_(request.rank, request.size),
      shrink_(*this, reactor_, heartbeat_) {
  self_ = {request.rank, hostName(), ::getpid(), listener_.endpoint()};
  self_.endpoint.key = key_.open;
  for (const int side : {0, 1}) children_[static_cast<size_t>(side)].who.rank = tree::childOf(rank(), side);
  takenDown_ = {rank(), Stop::kDeath, ErrorCode::kRemote, describe(self_) + " has taken down its control plane"};
  brokenDown_ = {rank(), Stop::kError, ErrorCode::kSystem,
                 describe(self_) + " has run out of memory, and has given up its control plane"};
  reactor_.whenWoken([this] { spreadInShort(); });
  // Others than its children have nothing to say to it while it joins.
  listener_.whenStarved([this](int error) {
    const bool waits = std::ranges::any_of(
        children_, [this](const Child& child) { return child.who.rank < size() && !child.line && !child.left; });
    if (waits && !joining_.over()) joining_.starve("nobody can call it: " + errnoText(error));
  });
}

// Over a Unix socket nobody comes between ranks that know nothing of each other: there the root hands over a secret
// that it has drawn.
void ControlNode::requireSecret() const {
  if (!request_.encrypt || !isExposed(request_.id)) return;
  throw Error(ErrorCode::kInvalidUsage,
              "TUTTI_ENCRYPT=1 needs a secret, and this launcher gives none: set TUTTI_SECRET or TUTTI_SECRET_FILE on "
              "every rank");
}

Listener::Request ControlNode::listenRequest() const {
  requireSecret();
  const uint64_t id = randomNumber();
  Endpoint own;
  own.id = id;
  return {memberContext(request_, key_, own),
          {fmt::format("tutti-{:016x}", id)},
          request_.network,
          0,
          true,
          isPublic(request_.id),
          rootPort()};
}

// A faster rank of rank 0's host could be there before the root is. Of an id that was handed over, the root is there.
uint16_t ControlNode::rootPort() const noexcept {
  const bool workedOut = !request_.id.alike.empty() && !request_.id.addresses.empty();
  return workedOut ? request_.id.addresses.front().port : uint16_t{0};
}

void ControlNode::learned(const Secret& secret) noexcept {
  request_.id.exposed = isExposed(request_.id);
  request_.id.secret = secret;
  listener_.open(provenBy(request_.id));
}

void ControlNode::run() {
  log::setThreadRank(rank());
  end(begin() && reactor_.run([this](const std::string& what) { broke(what); }));
}

bool ControlNode::begin() noexcept {
  try {
    gathering_.addOwn(kJoinSequence, encode(Record{self_, request_.info}));
    joining_.start();
    return true;
  } catch (const Error& e) {
    brokenDown_.code = e.code();
    setText(brokenDown_.text, e.what());
  } catch (const std::exception&) {  // no memory: as it says already
  }
  reactor_.close();  // it will not run
  joining_.tellUnbegun(brokenDown_.text);
  return false;
}

// Whoever still waits at the mailbox must not wait for a thread that is gone. Calls that are under way keep themselves
// alive, and their sockets, until they are told.
void ControlNode::end(bool inGoodOrder) noexcept {
  if (!inGoodOrder) cutAll();
  joining_.stop();
  streams_.stop();
  const Failure& last = inGoodOrder ? takenDown_ : brokenDown_;
  const std::string_view why = inGoodOrder ? "the process is ending" : std::string_view(brokenDown_.text);
  mailbox_.notJoined(last.code, why);
  shrink_.close(last.code, why);
  mailbox_.fail(last);
}

// As the end of the process would: the neighbours see it, and pass it on.
void ControlNode::cutAll() noexcept {
  joining_.cut();
  streams_.stop();
  listener_.close();
  for (const Child& child : children_)
    if (child.line) child.line->close();
  if (parent_) parent_->close();
}

void ControlNode::arrived(const std::shared_ptr<Line>& line, Frame& first) try {
  switch (static_cast<Kind>(first.type)) {
    case Kind::kTree:
      return childArrived(line, first);
    case Kind::kShrinkCall:
    case Kind::kShrinkProbe:
      requireCaller(*line, decodeShrinkCall(first.payload).rank);
      return shrink_.arrived(line, first);
    case Kind::kStream:
      if (ownerLeft_) return line->close();
      return streamArrived(*line, first);
    default:
      throw Error(ErrorCode::kRemote, fmt::format("a first frame of type {}", first.type));
  }
} catch (const Error& e) {
  listener_.refuse(*line, e.what());
}

// Before this rank knows everyone nobody has anything to ask of it but its children.
void ControlNode::requireCaller(const Line& line, int rank) const {
  if (!joined()) throw Error(ErrorCode::kRemote, "a call before this rank has joined");
  if (rank < 0 || rank >= size() || !line.isFrom(who(rank).endpoint.key))
    throw Error(ErrorCode::kRemote, fmt::format("it is not the rank {} that it says it is", rank));
}

// A peer that has joined already may be faster than the table: its stream waits for that, unread.
void ControlNode::streamArrived(Line& line, const Frame& first) {
  const StreamHello hello = decodeStreamHello(first.payload);
  if (line.overUnix() != (hello.kind == StreamKind::kUnix))
    throw Error(ErrorCode::kRemote, "a stream of the wrong kind");
  if (joined()) {
    requireCaller(line, hello.from);
    return streams_.admit(hello, line.take());
  }
  if (earlyStreams_.size() >= Mailbox::mostStreams())
    throw Error(ErrorCode::kRemote, fmt::format("{} streams wait until all ranks have joined", earlyStreams_.size()));
  const noise::Key key = line.peerKey();
  earlyStreams_.push_back({hello, key, line.take()});
}

void ControlNode::takeEarlyStreams() {
  for (EarlyStream& early : std::exchange(earlyStreams_, {})) admitEarly(early);
}

void ControlNode::admitEarly(EarlyStream& early) try {
  const StreamHello& hello = early.hello;
  const bool known = hello.from >= 0 && hello.from < size();
  if (!known || (hello.kind != StreamKind::kUnix && early.caller != who(hello.from).endpoint.key))
    throw Error(ErrorCode::kRemote, fmt::format("it is not the rank {} that it says it is", hello.from));
  streams_.admit(hello, std::move(early.socket));
} catch (const Error& e) {
  log::warn("refused a stream: {}", e.what());
}

void ControlNode::childArrived(const std::shared_ptr<Line>& line, const Frame& first) {
  const Hello hello = decodeHello(first.payload);
  const bool isRank = hello.who.rank >= 0 && hello.who.rank < size();
  if (!isRank || tree::parentOf(hello.who.rank) != rank() || hello.size != size())
    throw Error(ErrorCode::kRemote, fmt::format("{} is no child of rank {}", describe(hello.who), rank()));
  if (!line->isFrom(hello.who.endpoint.key))
    throw Error(ErrorCode::kRemote, fmt::format("not {} itself", describe(hello.who)));
  const int side = hello.who.rank - tree::childOf(rank(), 0);
  Child& child = children_[static_cast<size_t>(side)];
  if (child.line || child.left)
    throw Error(ErrorCode::kRemote, fmt::format("{} comes a second time", describe(hello.who)));
  child.who = hello.who;
  child.line = line;
  watchOver(side, line);
}

void ControlNode::watchOver(int side, const std::shared_ptr<Line>& line) {
  const bool up = side == kParent;
  const auto behind = [&] { return tree::subtree(tree::childOf(rank(), side), size()).size(); };
  line->expectRanks(up ? size() : static_cast<int>(behind()), size());
  line->forgetKeys();
  Line::Events events;
  events.frame = [this, side](Frame& frame) { onFrame(side, frame); };
  events.closed = [this, side](const std::string& why) { onGone(side, why); };
  line->setEvents(std::move(events));
  heartbeat_.watch(line, [this, side](const std::string& how) { onSilence(side, how); });
}

void ControlNode::placed(const std::shared_ptr<Line>& line, const RankAddress& parent) {
  // The job's number alone comes again where jobs meet at one address.
  const uint64_t seed[] = {request_.id.job, joining_.draw()};
  hashInto(&id_, sizeof id_, seed, sizeof seed);
  parent_ = line;
  parentPerson_ = parent;
  if (line) {
    watchOver(kParent, line);
    line->send(Kind::kTree, encode(Hello{self_, size(), 0, 0, {}}));
  }
  passUp(kJoinSequence);
}

void ControlNode::onFrame(int side, Frame& frame) try {
  const auto kind = static_cast<Kind>(frame.type);
  if (kind == Kind::kGoodbye) return onGoodbye(side, frame.payload);
  if (kind == Kind::kLeaving) return noteLeaving(side);
  if (kind == Kind::kFailure) return onFailure(side, decodeFailure(frame.payload));
  if (kind == Kind::kMail) return onMail(side, std::move(frame.payload));
  if (kind == Kind::kGatherUp && side != kParent) return onShare(side, frame.payload);
  if (kind == Kind::kGatherDown && side == kParent)
    return onTable(std::make_shared<const Bytes>(std::move(frame.payload)));
  throw Error(ErrorCode::kRemote, fmt::format("a frame of type {} that does not belong here", frame.type));
} catch (const Error& e) {
  const RankAddress& who = side == kParent ? parentPerson_ : children_[size_t(side)].who;
  learn({who.rank, Stop::kError, ErrorCode::kRemote,
         fmt::format("{} said what cannot be understood: {}", describe(who), e.what())},
        nullptr);
}

// Of no rank (-1), or of one that there is: what is kept of the failures of ranks has an end.
void ControlNode::onFailure(int side, const Failure& failure) {
  if (failure.rank < -1 || failure.rank >= size())
    throw Error(ErrorCode::kRemote, fmt::format("a failure of rank {} of {}", failure.rank, size()));
  learn(failure, (side == kParent ? parent_ : children_[size_t(side)].line).get());
}

void ControlNode::noteLeaving(int side) { (side == kParent ? parentLeaving_ : children_[size_t(side)].leaving) = true; }

void ControlNode::onGoodbye(int side, std::span<const std::byte> ended) {
  if (side != kParent) {
    Child& child = children_[size_t(side)];
    for (const int one : decodeRanks(ended)) {
      if (one < 0 || one >= size() || sideOf(one) != side)
        throw Error(ErrorCode::kRemote, fmt::format("a goodbye of rank {}, which is not on that side", one));
      ended_.insert(one);
    }
    child.left = true;
    child.line->close();
    checkShares();
    return checkLeave();
  }
  // A parent goes before its children only when its process ends, or when all is over anyway.
  parent_->close();
  parent_.reset();
  learn({parentPerson_.rank, Stop::kDeath, ErrorCode::kRemote, describe(parentPerson_) + kLeftEarly}, nullptr);
}

void ControlNode::onGone(int side, const std::string& why) {
  RankAddress& who = side == kParent ? parentPerson_ : children_[size_t(side)].who;
  const bool leaving = side == kParent ? parentLeaving_ : children_[size_t(side)].leaving;
  const bool choked = (side == kParent ? parent_ : children_[size_t(side)].line)->choked();
  const std::string how = choked    ? " " + why
                          : leaving ? kLeftEarly
                                    : fmt::format(" left: {}{}", why, heartbeat_.stallNote());
  if (side == kParent)
    parent_.reset();
  else
    children_[size_t(side)].left = true;
  learn({who.rank, choked ? Stop::kSilence : Stop::kDeath, ErrorCode::kRemote, describe(who) + how}, nullptr);
  checkLeave();
}

// The silent one is told as well: should it be there again some day, it finds out why nobody speaks to it any more.
void ControlNode::onSilence(int side, const std::string& how) {
  const RankAddress& who = side == kParent ? parentPerson_ : children_[size_t(side)].who;
  const auto line = side == kParent ? parent_ : children_[size_t(side)].line;
  const Failure failure{who.rank, Stop::kSilence, ErrorCode::kRemote, fmt::format("{} {}", describe(who), how)};
  line->send(Kind::kFailure, encode(failure));
  line->close();
  if (side == kParent)
    parent_.reset();
  else
    children_[size_t(side)].left = true;
  learn(failure, nullptr);
  checkLeave();
}

// Only from ranks behind that line: what waits here of a rank is counted, and nobody may have it counted as another's.
void ControlNode::onMail(int side, Bytes&& payload) {
  const auto from = Reader(payload).value<int32_t>();
  if (from < 0 || from >= size() || sideOf(from) != side)
    throw Error(ErrorCode::kRemote, fmt::format("a mail from rank {}, which is not on that side", from));
  route(std::move(payload));
}

int ControlNode::sideOf(int other) const {
  const int hop = tree::nextHop(rank(), other);
  if (hop < 0) return kParent;
  return hop == rank() ? kNoSide : hop - tree::childOf(rank(), 0);
}

// The payload begins with the two ranks, so that a mail which only passes through is not unpacked.
void ControlNode::route(Bytes&& payload) {
  Reader in(payload);
  const int from = in.value<int32_t>(), to = in.value<int32_t>();
  if (from < 0 || from >= size() || to < 0 || to >= size())
    throw Error(ErrorCode::kRemote, fmt::format("a mail from rank {} for rank {} of {}", from, to, size()));
  const int side = sideOf(to);
  if (side == kNoSide) return mailForMe(decodeMail(payload));
  const auto& line = side == kParent ? parent_ : children_[size_t(side)].line;
  if (line && line->isOpen()) return line->send(Kind::kMail, std::move(payload));
  // Nobody is left there who could read it. Whoever asked something must not wait.
  if (Mail mail = decodeMail(payload); mail.use == MailUse::kQuestion)
    route(encode(Mail{to, mail.from, mail.key, departureOf(to), {}}));
}

// Mail may come before this rank knows everyone.
std::string ControlNode::nameOf(int rank) const {
  return joined() ? describe(who(rank)) : fmt::format("rank {}", rank);
}

void ControlNode::mailForMe(Mail mail) {
  if (mail.use == MailUse::kQuestion) return answer(mail);
  if (ownerLeft_) return;
  if (mail.use == MailUse::kMailbox) {
    if (mailbox_.deliver(mail.from, mail.key, std::move(mail.body))) return;
    learn({mail.from, Stop::kError, ErrorCode::kRemote,
           fmt::format("{} has filled the mailboxes of {} with what nobody there takes", nameOf(mail.from),
                       describe(self_))},
          nullptr);
  } else if (mail.use == MailUse::kAnswer || mail.use == MailUse::kLeft || mail.use == MailUse::kEnded)
    mailbox_.answered(mail.from, {0, mail.use != MailUse::kAnswer, std::move(mail.body), mail.use == MailUse::kEnded});
  else
    streams_.refused(mail);
}

// A rank that has left still says what it had done, as long as it is there to be asked.
void ControlNode::answer(const Mail& question) {
  Bytes body = request_.respond ? request_.respond(question.body) : Bytes{};
  const MailUse use = ownerLeft_ ? departureOf(rank()) : MailUse::kAnswer;
  route(encode(Mail{rank(), question.from, question.key, use, std::move(body)}));
}

void ControlNode::ask(int to, std::span<const std::byte> question) {
  if (to < 0 || to >= size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a question for rank {}: ranks go from 0 to {}", to, size() - 1));
  Mail mail{rank(), to, 0, MailUse::kQuestion, Bytes(question.begin(), question.end())};
  reactor_.post([this, payload = encode(mail)]() mutable { route(std::move(payload)); });
}

void ControlNode::post(int to, uint64_t key, std::span<const std::byte> message) {
  if (to < 0 || to >= size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a message for rank {}: ranks go from 0 to {}", to, size() - 1));
  if (message.size() > kMostMailBytes)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a message of {} bytes is too long: at most {}", message.size(), kMostMailBytes));
  Mail mail{rank(), to, key, MailUse::kMailbox, Bytes(message.begin(), message.end())};
  reactor_.post([this, payload = encode(mail)]() mutable { route(std::move(payload)); });
}

void ControlNode::requestStream(int peer, uint64_t key, StreamKind kind) {
  if (peer < 0 || peer >= size() || peer == rank())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a stream from rank {} to rank {} of {} cannot be had", rank(), peer, size()));
  if (!mailbox_.wantStream(peer, key, kind))
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("a stream to rank {} under key {:#x} is already asked for", peer, key));
  reactor_.post([this, peer, key, kind] {
    if (!leaving_) streams_.request(who(peer), memberContext(request_, key_, who(peer).endpoint), key, kind);
  });
}

}  // namespace tutti::control
