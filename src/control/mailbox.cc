#include "control/mailbox.h"

#include "base/deadline_names.h"
#include "process/log.h"

namespace tutti::control {

namespace {

void pass(const Mailbox::Then& then, bool refused, ErrorCode code, std::string_view text) noexcept {
  std::optional<Refusal> refusal;
  if (refused) setText(refusal.emplace(Refusal{code, {}}).text, text);
  try {
    then(refusal);
  } catch (const std::exception& e) {  // only for lack of memory; whoever waits for it has a deadline
    log::warn("what became of a join could not be passed on: {}", e.what());
  }
}

}  // namespace

void Mailbox::throwFailure() const { throw Error(failure_->code, failure_->text); }

bool Mailbox::awaitJoined(Deadline until) {
  std::unique_lock lock(mutex_);
  while (joined_ == Joined::kNotYet && !until.passed()) changed_.wait_for(lock, until.left());
  if (joined_ == Joined::kNo) throw Error(refusal_.code, refusal_.text);
  return joined_ == Joined::kYes;
}

void Mailbox::joined() noexcept { decide(Joined::kYes, {}, {}); }
void Mailbox::notJoined(ErrorCode code, std::string_view text) noexcept { decide(Joined::kNo, code, text); }

// Whoever waits learns that it is decided also where there is no memory for the words.
void Mailbox::decide(Joined how, ErrorCode code, std::string_view text) noexcept {
  Then then;
  {
    std::lock_guard lock(mutex_);
    if (joined_ != Joined::kNotYet) return;
    joined_ = how;
    refusal_.code = code;
    setText(refusal_.text, text);
    then = std::exchange(then_, {});
    changed_.notify_all();
  }
  if (then) pass(then, how == Joined::kNo, code, text);
}

void Mailbox::whenJoined(Then then) {
  std::optional<Refusal> refusal;
  {
    std::lock_guard lock(mutex_);
    if (joined_ == Joined::kNotYet) {
      then_ = std::move(then);
      return;
    }
    if (joined_ == Joined::kNo) refusal = refusal_;
  }
  then(refusal);
}

bool Mailbox::hasJoined() const {
  std::lock_guard lock(mutex_);
  return joined_ == Joined::kYes;
}

void Mailbox::whenNews(News news) {
  std::lock_guard lock(mutex_);
  news_ = std::move(news);
}

void Mailbox::tellNews() noexcept {
  changed_.notify_all();
  if (news_) news_();
}

std::optional<Bytes> Mailbox::poll(int from, uint64_t key) {
  std::lock_guard lock(mutex_);
  const auto at = mail_.find({from, key});
  if (at == mail_.end()) {
    if (failure_) throwFailure();
    return std::nullopt;
  }
  Bytes message = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) mail_.erase(at);
  Waiting& waiting = waiting_[from];
  --waiting.mails;
  waiting.bytes -= message.size();
  return message;
}

bool Mailbox::deliver(int from, uint64_t key, Bytes message) {
  std::lock_guard lock(mutex_);
  Waiting& waiting = waiting_[from];
  if (waiting.mails == kMostMails || waiting.bytes + message.size() > kMostMailboxBytes) return false;
  const size_t bytes = message.size();
  mail_[{from, key}].push_back(std::move(message));
  ++waiting.mails;
  waiting.bytes += bytes;
  tellNews();
  return true;
}

bool Mailbox::wantStream(int peer, uint64_t key, StreamKind kind) {
  std::lock_guard lock(mutex_);
  return wanted_.emplace(std::pair(peer, key), kind).second;
}

std::optional<SecureSocket> Mailbox::pollStream(int peer, uint64_t key) {
  std::lock_guard lock(mutex_);
  const auto wanted = wanted_.find({peer, key});
  if (wanted == wanted_.end())
    throw Error(ErrorCode::kInvalidUsage, fmt::format("no stream to rank {} was asked for under key {:#x}", peer, key));
  const StreamId id{peer, key, wanted->second};
  if (const auto at = parked_.find(id); at != parked_.end()) {
    SecureSocket socket = std::move(at->second.front());
    at->second.pop_front();
    if (at->second.empty()) parked_.erase(at);
    --waiting_[peer].streams;
    if (wanted->second == StreamKind::kUnix) --unixStreams_;
    wanted_.erase(wanted);
    return socket;
  }
  if (const auto at = refused_.find(id); at != refused_.end()) {
    const std::string why = std::move(at->second);
    refused_.erase(at);
    --waiting_[peer].refusals;
    wanted_.erase(wanted);
    throw Error(ErrorCode::kSystem, why);
  }
  if (failure_) throwFailure();
  return std::nullopt;
}

bool Mailbox::park(int peer, uint64_t key, StreamKind kind, SecureSocket socket) {
  std::lock_guard lock(mutex_);
  size_t& streams = waiting_[peer].streams;
  const bool unix = kind == StreamKind::kUnix;
  if (streams >= mostStreams() || (unix && unixStreams_ >= mostStreamsOfAll())) return false;
  parked_[{peer, key, kind}].push_back(std::move(socket));
  ++streams;
  unixStreams_ += unix;
  tellNews();
  return true;
}

void Mailbox::noStream(int peer, uint64_t key, StreamKind kind, const std::string& why) {
  std::lock_guard lock(mutex_);
  size_t& refusals = waiting_[peer].refusals;
  if (refusals == kMostStreams) return;
  if (refused_.insert_or_assign({peer, key, kind}, why).second) ++refusals;
  tellNews();
}

void Mailbox::answered(int rank, Answer answer) {
  std::lock_guard lock(mutex_);
  Answer& last = answers_[rank];
  answer.count = last.count + 1;
  last = std::move(answer);
  changed_.notify_all();
}

std::optional<Answer> Mailbox::lastAnswer(int rank) const {
  std::lock_guard lock(mutex_);
  const auto found = answers_.find(rank);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

void Mailbox::expectTable(uint64_t sequence) {
  std::lock_guard lock(mutex_);
  awaited_ = sequence;
  table_.reset();
  missing_.clear();
}

std::vector<Bytes> Mailbox::awaitTable(uint64_t sequence, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return table_.has_value() || failure_.has_value(); };
  while (!ready() && !deadline.passed()) changed_.wait_for(lock, deadline.left());
  awaited_ = 0;
  if (table_) {
    auto table = std::move(*table_);
    table_.reset();
    return table;
  }
  if (failure_) throwFailure();
  throw Error(ErrorCode::kTimeout,
              fmt::format("the ranks did not all come to set-up exchange #{} before this rank's deadline, {}{}",
                          sequence, kJoinDeadline, missing_));
}

void Mailbox::tableCame(uint64_t sequence, std::vector<Bytes> table) {
  std::lock_guard lock(mutex_);
  if (sequence != awaited_) return;  // its caller has given up
  table_ = std::move(table);
  missing_.clear();
  changed_.notify_all();
}

void Mailbox::noteMissing(std::string text) {
  std::lock_guard lock(mutex_);
  missing_ = std::move(text);
}

std::optional<Failure> Mailbox::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void Mailbox::fail(const Failure& failure) noexcept {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  setText(failure_.emplace(Failure{failure.rank, failure.stop, failure.code, {}}).text, failure.text);
  // Release: pairs with whoever reads failed() with acquire and then asks for failure().
  failed_.store(true, std::memory_order_release);
  tellNews();
}

}  // namespace tutti::control
