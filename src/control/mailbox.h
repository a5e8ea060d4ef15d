// What a rank's own threads and the thread of its plane hand each other: mail, streams, gathered tables, failures.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/limits.h"
#include "net/secure_socket.h"
#include "wire/answer.h"
#include "wire/messages.h"

namespace tutti::control {

class Mailbox {
 public:
  // What may wait here of one rank until somebody takes it: mails and their bytes; streams; news that there is no
  // stream.
  static constexpr size_t kMostMails = 16384, kMostMailboxBytes = size_t{64} << 20, kMostStreams = 512;
  // Of streams, each of which is a descriptor, fewer where this process may have few.
  static size_t mostStreams() noexcept { return quarterOfFiles(16, kMostStreams); }
  // Of all ranks together, over Unix sockets: there, any process of the user may name any of them.
  static size_t mostStreamsOfAll() noexcept { return halfOfFiles(size_t{2} * 16); }

  // --- the rank's side: any thread ---
  // Blocks until joined() or notJoined(), and throws the latter's Error; false when it is later than `until`.
  bool awaitJoined(Deadline until);
  // Calls `then` once it is known, at once or on the thread that brings the news; without a refusal: joined.
  using Then = std::function<void(const std::optional<Refusal>&)>;
  void whenJoined(Then then);
  bool hasJoined() const;
  std::optional<Bytes> poll(int from, uint64_t key);
  // Notes that a stream is wanted; false when it already was.
  bool wantStream(int peer, uint64_t key, StreamKind kind);
  std::optional<SecureSocket> pollStream(int peer, uint64_t key);
  // `news` is called whenever something has come that poll() or pollStream() would give, or a failure; until another
  // takes its place. Under this mailbox's lock: it must not ask here, nor throw.
  using News = std::function<void()>;
  void whenNews(News news);
  std::optional<Answer> lastAnswer(int rank) const;
  // Before the own share is handed in: from here on that table is kept.
  void expectTable(uint64_t sequence);
  // Blocks. Throws Error(kTimeout), with what noteMissing() said last, or Error(kRemote).
  std::vector<Bytes> awaitTable(uint64_t sequence, Deadline deadline);
  const std::atomic<bool>& failed() const noexcept { return failed_; }
  std::optional<Failure> failure() const;

  // --- the plane's side ---
  void joined() noexcept;
  void notJoined(ErrorCode code, std::string_view text) noexcept;
  // False: too much waits here of that rank, and this is dropped.
  bool deliver(int from, uint64_t key, Bytes message);
  void answered(int rank, Answer answer);
  // False: too many wait here, of that rank or of all, and this one is closed.
  bool park(int peer, uint64_t key, StreamKind kind, SecureSocket socket);
  // Beyond as many, news is dropped: whoever waits has a deadline.
  void noStream(int peer, uint64_t key, StreamKind kind, const std::string& why);
  void tableCame(uint64_t sequence, std::vector<Bytes> table);
  // What awaitTable() should say about who is missing, should its deadline pass.
  void noteMissing(std::string text);
  // The first failure stays. Any thread.
  void fail(const Failure& failure) noexcept;

 private:
  enum class Joined : uint8_t { kNotYet, kYes, kNo };
  using StreamId = std::tuple<int, uint64_t, StreamKind>;
  struct Waiting {  // of one rank
    size_t mails = 0, bytes = 0, streams = 0, refusals = 0;
  };
  void tellNews() noexcept;
  void decide(Joined how, ErrorCode code, std::string_view text) noexcept;
  [[noreturn]] void throwFailure() const;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  News news_;
  Joined joined_ = Joined::kNotYet;
  Refusal refusal_;
  Then then_;
  std::map<int, Waiting> waiting_;
  std::map<std::pair<int, uint64_t>, std::deque<Bytes>> mail_;
  std::map<std::pair<int, uint64_t>, StreamKind> wanted_;
  std::map<StreamId, std::deque<SecureSocket>> parked_;
  size_t unixStreams_ = 0;  // in all of them
  std::map<StreamId, std::string> refused_;
  std::map<int, Answer> answers_;
  uint64_t awaited_ = 0;  // sequence number of the table that is waited for
  std::optional<std::vector<Bytes>> table_;
  std::string missing_;
  std::optional<Failure> failure_;
  std::atomic<bool> failed_{false};
};

}  // namespace tutti::control
