// What the control plane's frames carry.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "net/handshake.h"
#include "wire/failure.h"
#include "wire/join_request.h"
#include "wire/stream_kind.h"

namespace tutti::control {

enum class Kind : uint8_t {
  // between a rank and the root
  kHello = 1,  // Hello
  kPlace,      // Place
  kRefuse,     // Refusal; either way
  kDone,       // empty: the rank has the whole table
  // first frames to a rank's listener
  kTree,    // the child's rank
  kStream,  // StreamHello
  // in the tree
  kGatherUp,    // sequence, entries
  kGatherDown,  // sequence, a block per rank
  kMail,        // Mail
  kFailure,     // Failure
  kGoodbye,     // to the parent: the ranks from there on down that have left because their process ended
  // between survivors, see shrink.h; the first two are first frames to a rank's listener
  kShrinkCall,    // ShrinkCall: waits here for what becomes of it
  kShrinkProbe,   // ShrinkCall: only asks
  kShrinkWait,    // words: who is waited for
  kShrinkTry,     // ShrinkTry
  kShrinkTried,   // ShrinkTried
  kShrinkAgain,   // empty: what is being tried comes to nothing
  kShrinkCommit,  // job: that one it is
  kShrinkAck,     // empty: has committed
  kShrinkDone,    // empty: all have
  kShrinkEnd,     // Refusal
  // on any line
  kAlive,  // empty: a sign of life
  // in the tree
  kLeaving,  // empty: the rank's owner has left in good order; its part of the tree stays for those who need it
  // from the root, when all have come
  kDigest,  // Digest of all records: what the table in the tree must say
  // between survivors
  kShrinkDiffer,  // ShrinkDiffer: they name different ranks to leave out
  kShrinkGaveUp,  // Refusal: why who says this has given its call up
};

// The most bytes of payload that a frame of a kind may have among so many ranks; 0 also for what is no kind. Who sends
// more is refused.
size_t mostBytes(Kind kind, int ranks) noexcept;
// How many bytes may wait to be sent on a line among so many ranks. A peer that takes too little has failed: every
// rank's plane reads all the time. What may wait for one whose process is stopped for a while, or whose network is
// slow, is the table of an exchange, of which one is under way, with up to 1 MiB of each rank; and mail for the ranks
// behind it: what others tell them to connect, at most 1 MiB a pair and mostly a few hundred bytes, and questions, one
// in five seconds of each rank that waits. That is some MiB and grows with the ranks, as the longest table does: so
// that, and 64 MiB.
size_t mostQueued(int ranks) noexcept;
// The most bytes of a mail's body, and of what a rank gives to an exchange: the leader of a split an id, and a parcel
// for each of up to 2^14 ranks. A longer text is cut.
inline constexpr size_t kMostMailBytes = size_t{1} << 20, kMostShareBytes = (size_t{1} << 20) + 4096;

// Where somebody listens. `id` is what the hello must name, `key` what only the one who listens there can answer for.
struct Endpoint {
  uint64_t id = 0;
  noise::Key key{};
  std::string unixName;  // empty: none
  std::vector<Address> addresses;
};
inline std::vector<std::string> unixNamesOf(const Endpoint& endpoint) {
  return endpoint.unixName.empty() ? std::vector<std::string>() : std::vector{endpoint.unixName};
}

// Who somebody is.
struct RankAddress {
  int rank = -1;
  std::string host;
  int64_t pid = 0;
  Endpoint endpoint;
};
std::string describe(const RankAddress& who);  // "rank 3 (host n2, pid 411)"

// A hash of a rank's record, as it gives it to the table, and of those of all ranks, in order: by it a rank knows that
// nobody in the tree has changed anything in the table.
using Digest = std::array<std::byte, 32>;
Digest digestOf(std::span<const std::byte> record) noexcept;
Digest digestOfAll(std::span<const Digest> records) noexcept;

struct Hello {
  RankAddress who;
  int size = 0;
  int64_t leftMs = 0;       // until the rank's deadline
  int64_t heartbeatMs = 0;  // 0: silence is no failure
  // To the root:
  Agreement agreement{};
  Digest record{};
  Bytes mark{};  // of the secret that was given beside the id (markOf), wrapped (Line::wrap); empty: none was
};

struct Place {
  uint64_t draw = 0;  // the root's, at random: tells its job from others that have met at the same place
  Bytes secret;       // the one that the root has drawn, wrapped (Line::wrap); empty: the id has one
  std::optional<RankAddress> parent;
};

struct Refusal {
  ErrorCode code = ErrorCode::kRemote;
  std::string text;
};

struct StreamHello {
  int from = 0;
  uint64_t key = 0;
  StreamKind kind = StreamKind::kUnix;
};

// What a mail is for: the owner's mailbox; the news that a stream cannot be had; a question to the rank's `respond`,
// its answer, and the news that nobody is left there to answer, by itself or because its process ended.
enum class MailUse : uint8_t { kMailbox, kNoUnixStream, kNoTcpStream, kQuestion, kAnswer, kLeft, kEnded };

struct Mail {
  int from = 0, to = 0;
  uint64_t key = 0;
  MailUse use = MailUse::kMailbox;
  Bytes body;
};

// A member's record in the table that the tree gathers while joining.
struct Record {
  RankAddress who;
  Bytes info;
};

struct ShrinkCall {
  int rank = 0;
  uint64_t serial = 0;  // how many shrinks of this plane the rank has behind it
  uint64_t round = 0;   // how often the survivors have differed since the last of them
  // Whom it leaves out though they may be alive, as a digest (0: nobody) and for texts.
  uint64_t leftOut = 0;
  std::string leftOutWords;
  std::string differed;  // how, in the round before; empty: there is none
};

// That round of calls comes to nothing.
struct ShrinkDiffer {
  uint64_t round = 0;
  std::string text;
};

// The new plane that a leader proposes. The secret of `id` does not travel with it: `parcel` has it, for one survivor.
struct ShrinkTry {
  UniqueId id;
  Bytes parcel;
  std::vector<int> survivors;  // by their old ranks, in order
};

struct ShrinkTried {
  uint64_t job = 0;
  std::optional<Refusal> refusal;  // why it could not be joined
};

// What both ends of a connection to that rank prove; `own` is the keys of the rank that asks.
HandshakeContext memberContext(const JoinRequest& request, const noise::KeyPair& own, const Endpoint& called);

// What this rank's hellos say.
inline Encryption encryptionOf(const JoinRequest& request) noexcept {
  return request.encrypt ? Encryption::kOn : Encryption::kOff;
}

// "2, 5, 7-12": at most a few items, then "and N more".
std::string listRanks(const std::vector<int>& ranks);
std::string nameRanks(const std::vector<int>& ranks);  // the same behind "rank" or "ranks"

Bytes encode(const Hello& hello);
Bytes encode(const Place& place);
Bytes encode(const Refusal& refusal);
Bytes encode(const StreamHello& hello);
Bytes encode(const Mail& mail);
Bytes encode(const Record& record);
Bytes encode(const Failure& failure);
Bytes encode(const ShrinkCall& call);
Bytes encode(const ShrinkTry& proposal);
Bytes encode(const ShrinkTried& tried);
Bytes encode(const ShrinkDiffer& differ);
Bytes encodeRanks(const std::set<int>& ranks);
Bytes encodeWords(std::string_view text);
// What is decoded may stand in a log: names and texts are made plain (base/plain_text.h).
// All throw Error(kRemote) for bytes that are no such message.
Hello decodeHello(std::span<const std::byte> bytes);
Place decodePlace(std::span<const std::byte> bytes);
Refusal decodeRefusal(std::span<const std::byte> bytes);
StreamHello decodeStreamHello(std::span<const std::byte> bytes);
Mail decodeMail(std::span<const std::byte> bytes);
Record decodeRecord(std::span<const std::byte> bytes);
Failure decodeFailure(std::span<const std::byte> bytes);
std::set<int> decodeRanks(std::span<const std::byte> bytes);
std::string decodeWords(std::span<const std::byte> bytes);
ShrinkCall decodeShrinkCall(std::span<const std::byte> bytes);
ShrinkTry decodeShrinkTry(std::span<const std::byte> bytes);
ShrinkTried decodeShrinkTried(std::span<const std::byte> bytes);
ShrinkDiffer decodeShrinkDiffer(std::span<const std::byte> bytes);

}  // namespace tutti::control
