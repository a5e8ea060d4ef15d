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

#include "control/messages.h"

namespace tutti::control {

class Desk {
 public:
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
  std::optional<Answer> lastAnswer(int rank) const;
  // Before the own share is handed in: from here on that table is kept.
  void expectTable(uint64_t sequence);
  // Blocks. Throws Error(kTimeout), with what noteMissing() said last, or Error(kRemote).
  std::vector<Bytes> awaitTable(uint64_t sequence, Deadline deadline);
  uint64_t awaitNews(uint64_t seen, Deadline deadline);
  const std::atomic<bool>& failed() const noexcept { return failed_; }
  std::optional<Failure> failure() const;

  // --- the plane's side ---
  void joined() noexcept;
  void notJoined(ErrorCode code, std::string_view text) noexcept;
  void deliver(int from, uint64_t key, Bytes message);
  void answered(int rank, Answer answer);
  void park(int peer, uint64_t key, StreamKind kind, SecureSocket socket);
  void noStream(int peer, uint64_t key, StreamKind kind, const std::string& why);
  void tableCame(uint64_t sequence, std::vector<Bytes> table);
  // What awaitTable() should say about who is missing, should its deadline pass.
  void noteMissing(std::string text);
  // The first failure stays. Any thread.
  void fail(const Failure& failure) noexcept;

 private:
  enum class Joined : uint8_t { kNotYet, kYes, kNo };
  using StreamId = std::tuple<int, uint64_t, StreamKind>;
  void news();  // needs mutex_
  void decide(Joined how, ErrorCode code, std::string_view text) noexcept;
  [[noreturn]] void throwFailure() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t newsCount_ = 1;
  Joined joined_ = Joined::kNotYet;
  Refusal refusal_;
  Then then_;
  std::map<std::pair<int, uint64_t>, std::deque<Bytes>> mail_;
  std::map<std::pair<int, uint64_t>, StreamKind> wanted_;
  std::map<StreamId, std::deque<SecureSocket>> parked_;
  std::map<StreamId, std::string> refused_;
  std::map<int, Answer> answers_;
  uint64_t awaited_ = 0;  // sequence number of the table that is waited for
  std::optional<std::vector<Bytes>> table_;
  std::string missing_;
  std::optional<Failure> failure_;
  std::atomic<bool> failed_{false};
};

}  // namespace tutti::control
