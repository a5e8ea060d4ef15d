#include "launch/pmi.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "process/fork.h"

namespace tutti::control::pmi {
namespace {

constexpr size_t kLongestLine = 4096;

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::kRemote,
              fmt::format("the process manager at PMI_FD {}. Set TUTTI_ROOT=host:port to do without "
                          "it",
                          text));
}

std::map<std::string, std::string> fieldsOf(const std::string& line) {
  std::map<std::string, std::string> fields;
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (const size_t equals = word.find('='); equals != std::string::npos)
      fields[word.substr(0, equals)] = word.substr(equals + 1);
  return fields;
}

// Says goodbye at the end of the process. By then an MPI library may have done so and closed the descriptor, and its
// number may mean something else.
class Goodbye {
 public:
  constexpr Goodbye() noexcept = default;
  Goodbye(const Goodbye&) = delete;
  Goodbye& operator=(const Goodbye&) = delete;
  ~Goodbye() {
    // A forked child's end is not its parent's.
    if (inode_ == 0 || inodeOf(fd_) != inode_ || process_ != fork::generation()) return;
    constexpr std::string_view kLine = "cmd=finalize\n";
    if (::send(fd_, kLine.data(), kLine.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
    pollfd answer{fd_, POLLIN, 0};
    ::poll(&answer, 1, kPatienceMs);  // the manager minds when its answer finds nobody
  }
  // Any thread, as often as it likes: a process has one manager.
  void owe(int fd) {
    std::call_once(owed_, [&] {
      fd_ = fd;
      inode_ = inodeOf(fd);
      process_ = fork::generation();
    });
  }

 private:
  static constexpr int kPatienceMs = 500;
  static ino_t inodeOf(int fd) noexcept {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
  }
  std::once_flag owed_;
  int fd_ = -1;
  ino_t inode_ = 0;
  uint32_t process_ = 0;
};

constinit Goodbye goodbye;

}  // namespace

Client::Client(int fd, BoundedWait patience) : fd_(fd), patience_(std::move(patience)) {
  goodbye.owe(fd);
  ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  space_ = ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"];
}

void Client::put(const std::string& key, const std::string& value) {
  ask(fmt::format("cmd=put kvsname={} key={} value={}", space_, key, value), "put_result");
}

std::string Client::get(const std::string& key) {
  return ask(fmt::format("cmd=get kvsname={} key={}", space_, key), "get_result")["value"];
}

void Client::barrier() { ask("cmd=barrier_in", "barrier_out"); }

// What was asked for and answered may be secret: no text shows it.
Client::Fields Client::ask(const std::string& line, const std::string& wanted) {
  send(line + "\n");
  Fields fields = fieldsOf(receive());
  if (fields["cmd"] != wanted) refuse(fmt::format("has answered something else than {}", wanted));
  if (const std::string rc = fields["rc"]; !rc.empty() && rc != "0")
    refuse(fmt::format("has refused: {} with rc={}", wanted, rc));
  return fields;
}

void Client::awaitReady(short events) {
  for (;;) {
    if (patience_.over())
      throw Error(ErrorCode::kTimeout,
                  fmt::format("the process manager at PMI_FD did not answer before {}: not every rank has come to the "
                              "point where they learn where to meet. Look for their processes",
                              patience_.name()));
    pollfd ready{fd_, events, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(patience_.step().count()) + 1);
    if (count > 0) return;
    if (count < 0 && errno != EINTR) throw systemError("cannot wait for PMI_FD", errno);
  }
}

void Client::send(const std::string& line) {
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t bytes = ::send(fd_, line.data() + sent, line.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes > 0)
      sent += static_cast<size_t>(bytes);
    else if (bytes < 0 && errno == EAGAIN)
      awaitReady(POLLOUT);
    else if (bytes < 0 && errno != EINTR)
      refuse(fmt::format("cannot be written to ({}): MPI may have been finalized before", errnoText(errno)));
  }
}

std::string Client::receive() {
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kLongestLine) refuse("sends a line without end");
    std::array<char, 1024> bytes;
    const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0)
      received_.append(bytes.data(), static_cast<size_t>(count));
    else if (count == 0)
      refuse("has closed it");
    else if (errno == EAGAIN)
      awaitReady(POLLIN);
    else if (errno != EINTR)
      refuse(fmt::format("cannot be read from ({})", errnoText(errno)));
  }
}

// A pair of connected sockets tells who made it.
std::string ownerOf(int fd) {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || who.pid <= 0) return "";
  return fmt::format("pid {}/", who.pid);
}

}  // namespace tutti::control::pmi
