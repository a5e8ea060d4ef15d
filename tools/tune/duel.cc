#include "tune/duel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "complain.h"
#include "process/fd.h"
#include "tune/duel_rank.h"
#include "tutti/tutti.h"

namespace tutti::tune {
namespace {

using Words = std::vector<std::string>;

// What is set for other jobs would be measured; and who the ranks are is for this one to say.
Words environmentOf(const DuelWish& wish, const Words& own) {
  Words words = own;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "TUTTI_", 6) != 0) words.emplace_back(*entry);
  if (!wish.profile.empty()) words.push_back("TUTTI_PROFILE=" + wish.profile);
  return words;
}

// Where ranks meet that are processes: this one has to live until they have.
std::string newId() {
  tuttiUniqueId id;
  if (tuttiGetUniqueId(&id) != tuttiSuccess) throw Error(ErrorCode::kSystem, tuttiGetLastError(nullptr));
  std::string hex;
  for (const char c : id.internal) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

std::vector<char*> pointersTo(Words& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What the processes of a job say: rank 0's outcomes, and the errors of all.
class Pipe {
 public:
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw systemError("cannot make a pipe", errno);
    from_ = UniqueFd(ends[0]), to_ = UniqueFd(ends[1]);
  }
  int to() const { return to_.get(); }
  // To its end, which is that of all processes. `hear` is given each line.
  template <class Hear>
  void read(Hear hear) {
    to_.reset();
    std::string line;
    char bytes[4096];
    while (const size_t length = some(bytes)) {
      line.append(bytes, length);
      for (size_t end; (end = line.find('\n')) != std::string::npos; line.erase(0, end + 1)) hear(line.substr(0, end));
    }
    if (!line.empty()) hear(line);
  }

 private:
  template <size_t kRoom>
  size_t some(char (&bytes)[kRoom]) const {
    for (;;) {
      const ssize_t length = ::read(from_.get(), bytes, kRoom);
      if (length >= 0) return static_cast<size_t>(length);
      if (errno != EINTR) throw systemError("cannot read what the ranks say", errno);
    }
  }

  UniqueFd from_, to_;
};

class Job {
 public:
  Job(const DuelWish& wish, const Part& part) : wish_(wish), part_(part) {}
  // Those that live are ended: whoever gives up the job wants no more of it.
  ~Job() {
    for (const pid_t child : children_) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  template <class Hear>
  void run(Hear hear) {
    const bool threads = part_.transport == "p2p";
    const std::string id = threads ? "" : newId();
    for (int rank = 0; rank < (threads ? 1 : part_.ranks); ++rank)
      start(threads ? Words{}
                    : Words{"TUTTI_LAUNCHER=tutti", fmt::format("TUTTI_RANK={}", rank),
                            fmt::format("TUTTI_SIZE={}", part_.ranks), "TUTTI_ID=" + id});
    std::string said;
    pipe_.read([&](const std::string& line) { line.starts_with('{') ? hear(line) : void(said += line + "\n"); });
    bool good = true;
    while (!children_.empty()) {
      int status = 0;
      ::waitpid(children_.back(), &status, 0);
      children_.pop_back();
      good = good && status == 0;
    }
    if (!good)
      throw Error(ErrorCode::kSystem,
                  fmt::format("the duel of {} ranks over {} failed:\n{}", part_.ranks, part_.transport, said));
  }

 private:
  void start(const Words& own) {
    Words words = {"tutti-tune",
                   "duel-ranks",
                   wish_.sweep,
                   "--cells",
                   wish_.cells,
                   "--limit",
                   std::to_string(wish_.most),
                   "--seconds",
                   fmt::format("{}", wish_.seconds),
                   "--transport",
                   part_.transport,
                   "--ranks",
                   std::to_string(part_.ranks)};
    Words variables = environmentOf(wish_, own);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, pipe_.to(), 1);
    ::posix_spawn_file_actions_adddup2(&files, pipe_.to(), 2);
    pid_t child = 0;
    const int error = ::posix_spawn(&child, "/proc/self/exe", &files, nullptr, pointersTo(words).data(),
                                    pointersTo(variables).data());
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw systemError("cannot start a rank", error);
    children_.push_back(child);
  }

  const DuelWish& wish_;
  const Part& part_;
  Pipe pipe_;
  std::vector<pid_t> children_;
};

std::vector<Part> partsOf(const std::vector<Cell>& cells) {
  std::vector<Part> parts;
  for (const Cell& cell : cells) {
    const auto same = [&](const Part& part) { return part.transport == cell.transport && part.ranks == cell.ranks; };
    if (std::ranges::none_of(parts, same)) parts.push_back({cell.transport, cell.ranks});
  }
  return parts;
}

std::string_view wordOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWithin:
      return "within";
    case Verdict::kMissed:
      return "missed";
    default:
      return "undecided";
  }
}

std::string lineOf(const Outcome& outcome) {
  const std::string head =
      fmt::format("{:<16}{:<6}{:>6}{:>11}  {:<10}  {:<14}", commandName(outcome.collective), outcome.transport,
                  outcome.ranks, outcome.bytes, wordOf(outcome.verdict()), nameOf(outcome.choice));
  const Bout* const hardest = outcome.hardest();
  if (hardest == nullptr) return head + "-\n";
  const Interval median = medianOf(hardest->ratios);
  return fmt::format("{}{:<14}{:>6.2f}   {:.2f} to {:.2f}{:>8}\n", head, nameOf(hardest->contender), median.median,
                     median.low, median.high, hardest->ratios.size());
}

}  // namespace

std::vector<Outcome> duel(const DuelWish& wish, const std::function<void(const Outcome&)>& each) {
  const std::vector<Cell> cells = pickedFrom(readSweep(wish.sweep), wish.cells, wish.most);
  std::vector<Outcome> outcomes;
  for (const Part& part : partsOf(cells))
    Job(wish, part).run([&](const std::string& line) {
      outcomes.push_back(outcomeFrom(line));
      each(outcomes.back());
      tools::complain("[{}/{}] {}", outcomes.size(), cells.size(), lineOf(outcomes.back()));
    });
  return outcomes;
}

void playPart(const DuelWish& wish, const Part& part) {
  DuelOrder order{pickedFrom(readSweep(wish.sweep), wish.cells, wish.most), wish.seconds};
  std::erase_if(order.cells,
                [&](const Cell& cell) { return cell.transport != part.transport || cell.ranks != part.ranks; });
  if (order.cells.empty())
    throw Error(ErrorCode::kInvalidArgument, "duel-ranks is for the ranks that `duel` starts: nothing is to do");
  playDuel(order, part.transport == "p2p");
}

std::string tableOf(const std::vector<Outcome>& outcomes, bool all) {
  std::string lines;
  size_t within = 0, missed = 0, open = 0;
  for (const Outcome& outcome : outcomes) {
    const Verdict verdict = outcome.verdict();
    ++(verdict == Verdict::kWithin ? within : verdict == Verdict::kMissed ? missed : open);
    if (all || verdict != Verdict::kWithin) lines += lineOf(outcome);
  }
  if (!lines.empty())
    lines = fmt::format("{:<16}{:<6}{:>6}{:>11}  {:<10}  {:<14}{:<14}{:>6}   {:<12}{:>8}\n", "operation", "over",
                        "ranks", "bytes", "verdict", "chosen", "against", "ratio", "between", "rounds") +
            lines;
  const double part = 100.0 * static_cast<double>(within) / static_cast<double>(std::max<size_t>(1, outcomes.size()));
  return fmt::format(
      "{}{} cells: {:.1f} % of the choices ({}) are the fastest or within 10 % of it; {} are missed, and {} undecided, "
      "which counts as missed\n",
      lines, outcomes.size(), part, within, missed, open);
}

}  // namespace tutti::tune
