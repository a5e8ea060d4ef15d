#include "control/member.h"

#include <unistd.h>

#include "base/log.h"
#include "control/tree.h"

namespace tutti::control {
namespace {

constexpr size_t kMaxMailBytes = kMaxFrameBytes / 2;

}  // namespace

Member::Member(const JoinRequest& request)
    : request_(request),
      listener_(reactor_, listenRequest(),
                [this](const std::shared_ptr<Line>& line, Frame& first) { arrived(line, first); }),
      joining_(reactor_, request_, self_,
               {[this](const std::shared_ptr<Line>& line, const Person& parent) { placed(line, parent); },
                [this](ErrorCode code, const std::string& text) { joinFailed(code, text); },
                [this] { return missingText(kJoinSequence); }}),
      streams_(reactor_, desk_, request.rank, [this](Mail mail) { route(encode(mail)); }),
      gathering_(request.rank, request.size) {
  self_ = {request.rank, hostName(), ::getpid(), listener_.endpoint()};
  for (const int side : {0, 1}) children_[static_cast<size_t>(side)].person.rank = tree::childOf(rank(), side);
}

Listener::Request Member::listenRequest() const {
  const uint64_t id = randomNumber();
  return {{request_.id.secret, request_.id.job, id}, fmt::format("tutti-{:016x}", id), request_.network, 0, true};
}

void Member::run() {
  log::setThreadRank(rank());
  gathering_.addOwn(kJoinSequence, encode(Record{self_, request_.card}));
  joining_.start();
  reactor_.run();
  // Whoever still waits at the desk must not wait for a thread that is gone.
  desk_.notJoined(ErrorCode::kRemote, "the process is ending");
  desk_.fail({rank(), describe(self_) + " has taken down its control plane", true});
}

void Member::arrived(const std::shared_ptr<Line>& line, Frame& first) try {
  switch (static_cast<Kind>(first.type)) {
    case Kind::kTree:
      return childArrived(line, first);
    case Kind::kStream:
      return streams_.arrived(*line, first);
    default:
      throw Error(ErrorCode::kRemote, fmt::format("a first frame of type {}", first.type));
  }
} catch (const Error& e) {
  log::warn("refused {}: {}", line->peer(), e.what());
  line->close();
}

void Member::childArrived(const std::shared_ptr<Line>& line, const Frame& first) {
  const Hello hello = decodeHello(first.payload);
  const int side = hello.person.rank - tree::childOf(rank(), 0);
  if (side < 0 || side > 1 || hello.size != size() || hello.person.rank >= size())
    throw Error(ErrorCode::kRemote, fmt::format("{} is no child of rank {}", describe(hello.person), rank()));
  Child& child = children_[static_cast<size_t>(side)];
  if (child.line || child.left)
    throw Error(ErrorCode::kRemote, fmt::format("{} comes a second time", describe(hello.person)));
  child.person = hello.person;
  child.line = line;
  Line::Events events;
  events.frame = [this, side](Frame& frame) { onFrame(side, frame); };
  events.closed = [this, side](const std::string& why) { onGone(side, why); };
  line->setEvents(std::move(events));
}

void Member::placed(const std::shared_ptr<Line>& line, const Person& parent) {
  parent_ = line;
  parentPerson_ = parent;
  if (line) {
    Line::Events events;
    events.frame = [this](Frame& frame) { onFrame(kParent, frame); };
    events.closed = [this](const std::string& why) { onGone(kParent, why); };
    line->setEvents(std::move(events));
    line->send(Kind::kTree, encode(Hello{self_, size(), 0}));
  }
  passUp(kJoinSequence);
}

void Member::onFrame(int side, Frame& frame) try {
  const auto kind = static_cast<Kind>(frame.type);
  if (kind == Kind::kGoodbye) return onGoodbye(side);
  if (kind == Kind::kFailure)
    return learn(decodeFailure(frame.payload), (side == kParent ? parent_ : children_[size_t(side)].line).get());
  if (kind == Kind::kMail) return route(std::move(frame.payload));
  if (kind == Kind::kGatherUp && side != kParent) return onShare(side, frame.payload);
  if (kind == Kind::kGatherDown && side == kParent)
    return onTable(std::make_shared<const Bytes>(std::move(frame.payload)));
  throw Error(ErrorCode::kRemote, fmt::format("a frame of type {} that does not belong here", frame.type));
} catch (const Error& e) {
  const Person& who = side == kParent ? parentPerson_ : children_[size_t(side)].person;
  learn({who.rank, fmt::format("{} said what cannot be understood: {}", describe(who), e.what()), false}, nullptr);
}

void Member::onGoodbye(int side) {
  if (side != kParent) {
    Child& child = children_[size_t(side)];
    child.left = true;
    child.line->close();
    checkShares();
    return checkLeave();
  }
  // A parent goes before its children only when its process ends, or when all is over anyway.
  parent_->close();
  parent_.reset();
  learn({parentPerson_.rank,
         fmt::format("{} left: its process ended before the others were done", describe(parentPerson_)), false},
        nullptr);
}

void Member::onGone(int side, const std::string& why) {
  Person& who = side == kParent ? parentPerson_ : children_[size_t(side)].person;
  const std::string text = fmt::format("{} left: {}", describe(who), why);
  if (side == kParent)
    parent_.reset();
  else
    children_[size_t(side)].left = true;
  learn({who.rank, text, false}, nullptr);
  checkLeave();
}

// The payload begins with the two ranks, so that a mail which only passes through is not unpacked.
void Member::route(Bytes&& payload) {
  Reader in(payload);
  in.value<int32_t>();
  const int to = in.value<int32_t>();
  if (to < 0 || to >= size()) throw Error(ErrorCode::kRemote, fmt::format("a mail for rank {} of {}", to, size()));
  const int hop = tree::nextHop(rank(), to);
  if (hop == rank()) return mailForMe(decodeMail(payload));
  const auto& line = hop < 0 ? parent_ : children_[size_t(hop - tree::childOf(rank(), 0))].line;
  // Nobody is left there who could read it.
  if (line) line->send(Kind::kMail, std::move(payload));
}

void Member::mailForMe(Mail mail) {
  if (ownerLeft_) return;
  if (mail.use == MailUse::kMailbox)
    desk_.deliver(mail.from, mail.key, std::move(mail.body));
  else
    streams_.refused(mail);
}

void Member::post(int to, uint64_t key, std::span<const std::byte> message) {
  if (to < 0 || to >= size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a message for rank {}: ranks go from 0 to {}", to, size() - 1));
  if (message.size() > kMaxMailBytes)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a message of {} bytes is too long: at most {}", message.size(), kMaxMailBytes));
  Mail mail{rank(), to, key, MailUse::kMailbox, Bytes(message.begin(), message.end())};
  doLater([this, payload = encode(mail)]() mutable { route(std::move(payload)); });
}

void Member::requestStream(int peer, uint64_t key, StreamKind kind) {
  if (peer < 0 || peer >= size() || peer == rank())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a stream from rank {} to rank {} of {} cannot be had", rank(), peer, size()));
  if (!desk_.wantStream(peer, key, kind))
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("a stream to rank {} under key {:#x} is already asked for", peer, key));
  doLater([this, peer, key, kind] {
    if (!leaving_) streams_.request(person(peer), request_.id, key, kind);
  });
}

}  // namespace tutti::control
