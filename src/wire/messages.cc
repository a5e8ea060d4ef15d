#include "wire/messages.h"

#include <algorithm>
#include <limits>

#include "base/plain_text.h"
#include "base/random.h"
#include "net/frame.h"

namespace tutti::control {
namespace {

constexpr size_t kMaxAddresses = 256, kMostAgreed = 64;
// Of a name, and of words to people. A Unix socket's name has room for no more.
constexpr size_t kMostName = 256, kMostSetting = 1024, kMostText = size_t{16} << 10, kMostUnixName = 107;
// Numbers alone; and whatever else has a bound of its own: a person has addresses, a hello settings too.
constexpr size_t kNumbers = 64, kWords = size_t{64} << 10;
constexpr size_t kBesideShare = 2 * sizeof(uint64_t), kBesideMail = 32;
constexpr size_t kMostMailOnALine = size_t{64} << 20;

// What may stand in a log. It is cut where it is sent, and made plain where it comes.
void putText(Writer& out, std::string_view text) { out.text(text.substr(0, kMostText)); }
std::string getText(Reader& in) { return plainText(in.text(), kMostText); }
// Why somebody gives up: an owner's error has words also where a peer had none.
std::string getReason(Reader& in) {
  std::string reason = getText(in);
  return reason.empty() ? "no reason was given" : reason;
}
// Of what has failed: who polled for the end of one in progress would do so for ever.
ErrorCode getCode(Reader& in) {
  const auto code = in.oneOf(ErrorCode::kCuda, ErrorCode::kTimeout);
  if (code == ErrorCode::kInProgress) throw Error(ErrorCode::kRemote, "a failure that is still in progress");
  return code;
}
std::string getName(Reader& in) { return plainText(in.text(), kMostName); }
std::string getSetting(Reader& in) { return plainText(in.text(), kMostSetting); }

// The name is one to call, and must come as it was: but then no other is made.
std::string getUnixName(Reader& in) {
  std::string name = in.text();
  if (plainText(name, kMostUnixName) != name) throw Error(ErrorCode::kRemote, "a Unix socket's name that is none");
  return name;
}

void put(Writer& out, const Endpoint& endpoint) {
  for (const std::byte b : endpoint.key) out.value(b);
  out.value(endpoint.id).text(endpoint.unixName).value(static_cast<uint16_t>(endpoint.addresses.size()));
  for (const Address& address : endpoint.addresses) {
    out.value<uint8_t>(address.v6).value(address.port).value(address.scope);
    out.block(std::as_bytes(std::span(address.ip)));
  }
}

Endpoint getEndpoint(Reader& in) {
  Endpoint endpoint;
  for (std::byte& b : endpoint.key) b = in.value<std::byte>();
  endpoint.id = in.value<uint64_t>();
  endpoint.unixName = getUnixName(in);
  const size_t count = in.value<uint16_t>();
  if (count > kMaxAddresses) throw Error(ErrorCode::kRemote, fmt::format("{} addresses for one listener", count));
  for (size_t i = 0; i < count; ++i) {
    Address& address = endpoint.addresses.emplace_back();
    address.v6 = in.value<bool>();
    address.port = in.value<uint16_t>();
    address.scope = in.value<uint32_t>();
    const auto ip = in.block();
    if (ip.size() != address.ip.size()) throw Error(ErrorCode::kRemote, "an address of the wrong length");
    std::memcpy(address.ip.data(), ip.data(), ip.size());
  }
  return endpoint;
}

void put(Writer& out, const RankAddress& who) {
  out.value<int32_t>(who.rank).text(who.host).value(who.pid);
  put(out, who.endpoint);
}

RankAddress getPerson(Reader& in) {
  RankAddress who;
  who.rank = in.value<int32_t>();
  who.host = getName(in);
  who.pid = in.value<int64_t>();
  who.endpoint = getEndpoint(in);
  return who;
}

void put(Writer& out, const Agreement& agreement) {
  out.value(static_cast<uint16_t>(agreement.size()));
  for (const Agreed& one : agreement) out.text(one.name).text(one.value);
}

Agreement getAgreement(Reader& in) {
  Agreement agreement;
  const size_t count = in.value<uint16_t>();
  if (count > kMostAgreed) throw Error(ErrorCode::kRemote, fmt::format("{} settings of one rank", count));
  for (size_t i = 0; i < count; ++i) {
    Agreed& one = agreement.emplace_back();
    one.name = getName(in);
    one.value = getSetting(in);
  }
  return agreement;
}

}  // namespace

size_t mostBytes(Kind kind, int ranks) noexcept {
  const auto count = static_cast<size_t>(ranks);
  switch (kind) {
    case Kind::kDone:
    case Kind::kShrinkAgain:
    case Kind::kShrinkAck:
    case Kind::kShrinkDone:
    case Kind::kAlive:
    case Kind::kLeaving:
      return 0;
    case Kind::kStream:
    case Kind::kShrinkCommit:
    case Kind::kDigest:
      return kNumbers;
    case Kind::kHello:
    case Kind::kTree:
    case Kind::kPlace:
    case Kind::kRefuse:
    case Kind::kFailure:
    case Kind::kShrinkWait:
    case Kind::kShrinkGaveUp:
    case Kind::kShrinkTried:
    case Kind::kShrinkEnd:
    case Kind::kShrinkCall:
    case Kind::kShrinkProbe:
    case Kind::kShrinkDiffer:
      return kWords;
    case Kind::kShrinkTry:
      return kWords + count * sizeof(int32_t);
    case Kind::kGoodbye:
      return kNumbers + count * sizeof(int32_t);
    case Kind::kMail:
      return kMostMailBytes + kBesideMail;
    case Kind::kGatherUp:
    case Kind::kGatherDown:
      return std::min(kMaxFrameBytes, kBesideShare + count * (kMostShareBytes + kBesideShare));
  }
  return 0;
}

size_t mostQueued(int ranks) noexcept { return mostBytes(Kind::kGatherDown, ranks) + kMostMailOnALine; }

HandshakeContext memberContext(const JoinRequest& request, const noise::KeyPair& own, const Endpoint& called) {
  HandshakeContext context{provenBy(request.id), request.id.job, called.id, encryptionOf(request)};
  context.named = true;
  context.own = own;
  context.peer = called.key;
  return context;
}

Digest digestOf(std::span<const std::byte> record) noexcept {
  Digest digest;
  hashInto(digest.data(), digest.size(), record.data(), record.size());
  return digest;
}

Digest digestOfAll(std::span<const Digest> records) noexcept { return digestOf(std::as_bytes(records)); }

std::string describe(const RankAddress& who) {
  if (who.host.empty()) return fmt::format("rank {}", who.rank);
  return fmt::format("rank {} (host {}, pid {})", who.rank, who.host, who.pid);
}

std::string nameRanks(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", listRanks(ranks));
}

std::string listRanks(const std::vector<int>& given) {
  std::vector<int> ranks = given;
  std::sort(ranks.begin(), ranks.end());
  constexpr int kMaxItems = 16;
  std::string text;
  int items = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (items++ == kMaxItems) return fmt::format("{} and {} more", text, ranks.size() - i);
    if (!text.empty()) text += ", ";
    text += end - i > 2 ? fmt::format("{}-{}", ranks[i], ranks[end - 1]) : fmt::format("{}", ranks[i]);
    i = end - i > 2 ? end : i + 1;
  }
  return text;
}

Bytes encode(const Hello& hello) {
  Writer out;
  out.value<int32_t>(hello.size).value(hello.leftMs).value(hello.heartbeatMs);
  put(out, hello.who);
  put(out, hello.agreement);
  for (const std::byte b : hello.record) out.value(b);
  return out.block(hello.mark).take();
}

namespace {

// Whatever a stranger or a broken rank says: added to a time, it must not leave the clock's range.
int64_t getMs(Reader& in) { return std::clamp<int64_t>(in.value<int64_t>(), 0, std::numeric_limits<int32_t>::max()); }

}  // namespace

Hello decodeHello(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Hello hello;
  hello.size = in.value<int32_t>();
  hello.leftMs = getMs(in);
  hello.heartbeatMs = getMs(in);
  hello.who = getPerson(in);
  hello.agreement = getAgreement(in);
  for (std::byte& b : hello.record) b = in.value<std::byte>();
  const auto mark = in.block();
  hello.mark.assign(mark.begin(), mark.end());
  return hello;
}

Bytes encode(const Place& place) {
  Writer out;
  out.value(place.draw).block(place.secret).value<uint8_t>(place.parent.has_value());
  if (place.parent) put(out, *place.parent);
  return out.take();
}

Place decodePlace(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Place place;
  place.draw = in.value<uint64_t>();
  const auto secret = in.block();
  place.secret.assign(secret.begin(), secret.end());
  if (in.value<bool>()) place.parent = getPerson(in);
  return place;
}

Bytes encode(const Refusal& refusal) {
  Writer out;
  putText(out.value(refusal.code), refusal.text);
  return out.take();
}

Refusal decodeRefusal(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Refusal refusal;
  refusal.code = getCode(in);
  refusal.text = getReason(in);
  return refusal;
}

Bytes encode(const StreamHello& hello) {
  return Writer().value<int32_t>(hello.from).value(hello.key).value(hello.kind).take();
}

StreamHello decodeStreamHello(std::span<const std::byte> bytes) {
  Reader in(bytes);
  StreamHello hello;
  hello.from = in.value<int32_t>();
  hello.key = in.value<uint64_t>();
  hello.kind = in.oneOf(StreamKind::kUnix, StreamKind::kTcp);
  return hello;
}

Bytes encode(const Mail& mail) {
  return Writer()
      .value<int32_t>(mail.from)
      .value<int32_t>(mail.to)
      .value(mail.key)
      .value(mail.use)
      .block(mail.body)
      .take();
}

Mail decodeMail(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Mail mail;
  mail.from = in.value<int32_t>();
  mail.to = in.value<int32_t>();
  mail.key = in.value<uint64_t>();
  mail.use = in.oneOf(MailUse::kMailbox, MailUse::kEnded);
  const auto body = in.block();
  mail.body.assign(body.begin(), body.end());
  return mail;
}

Bytes encode(const Record& record) {
  Writer out;
  put(out, record.who);
  return out.block(record.info).take();
}

Record decodeRecord(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Record record;
  record.who = getPerson(in);
  const auto info = in.block();
  record.info.assign(info.begin(), info.end());
  return record;
}

Bytes encode(const Failure& failure) {
  Writer out;
  putText(out.value<int32_t>(failure.rank).value(failure.stop).value(failure.code), failure.text);
  return out.take();
}

Failure decodeFailure(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Failure failure;
  failure.rank = in.value<int32_t>();
  failure.stop = in.oneOf(Stop::kDeath, Stop::kGivenUp);
  failure.code = getCode(in);
  failure.text = getReason(in);
  return failure;
}

Bytes encodeWords(std::string_view text) {
  Writer out;
  putText(out, text);
  return out.take();
}

std::string decodeWords(std::span<const std::byte> bytes) {
  Reader in(bytes);
  return getText(in);
}

Bytes encode(const ShrinkCall& call) {
  Writer out;
  out.value<int32_t>(call.rank).value(call.serial).value(call.round).value(call.leftOut);
  putText(out, call.leftOutWords);
  putText(out, call.differed);
  return out.take();
}

ShrinkCall decodeShrinkCall(std::span<const std::byte> bytes) {
  Reader in(bytes);
  ShrinkCall call;
  call.rank = in.value<int32_t>();
  call.serial = in.value<uint64_t>();
  call.round = in.value<uint64_t>();
  call.leftOut = in.value<uint64_t>();
  call.leftOutWords = getText(in);
  call.differed = getText(in);
  return call;
}

Bytes encode(const ShrinkTry& proposal) {
  Writer out;
  UniqueId id = proposal.id;
  id.secret = {};
  out.block(encode(id)).block(proposal.parcel).value(static_cast<uint32_t>(proposal.survivors.size()));
  for (const int rank : proposal.survivors) out.value<int32_t>(rank);
  return out.take();
}

Bytes encodeRanks(const std::set<int>& ranks) {
  Writer out;
  for (const int rank : ranks) out.value<int32_t>(rank);
  return out.take();
}

std::set<int> decodeRanks(std::span<const std::byte> bytes) {
  std::set<int> ranks;
  for (Reader in(bytes); !in.empty();) ranks.insert(in.value<int32_t>());
  return ranks;
}

ShrinkTry decodeShrinkTry(std::span<const std::byte> bytes) {
  Reader in(bytes);
  ShrinkTry proposal;
  proposal.id = decodeTold(in.block());
  const auto parcel = in.block();
  proposal.parcel.assign(parcel.begin(), parcel.end());
  for (auto count = in.value<uint32_t>(); count > 0; --count) proposal.survivors.push_back(in.value<int32_t>());
  return proposal;
}

Bytes encode(const ShrinkTried& tried) {
  Writer out;
  out.value(tried.job).value<uint8_t>(tried.refusal.has_value());
  if (tried.refusal) out.block(encode(*tried.refusal));
  return out.take();
}

ShrinkTried decodeShrinkTried(std::span<const std::byte> bytes) {
  Reader in(bytes);
  ShrinkTried tried;
  tried.job = in.value<uint64_t>();
  if (in.value<bool>()) tried.refusal = decodeRefusal(in.block());
  return tried;
}

Bytes encode(const ShrinkDiffer& differ) {
  Writer out;
  putText(out.value(differ.round), differ.text);
  return out.take();
}

ShrinkDiffer decodeShrinkDiffer(std::span<const std::byte> bytes) {
  Reader in(bytes);
  ShrinkDiffer differ;
  differ.round = in.value<uint64_t>();
  differ.text = getReason(in);
  return differ;
}

}  // namespace tutti::control
