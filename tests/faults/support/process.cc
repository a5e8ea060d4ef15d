#include "faults/support/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace tutti::faults {
namespace {

namespace fs = std::filesystem;

constexpr int kWireFd = 3;

int count(const char* directory) {
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory)) ++entries;
  return entries;
}

[[noreturn]] void become(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (const auto& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

}  // namespace

int64_t now() noexcept { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

Wire::Wire(Wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Wire& Wire::operator=(Wire&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Wire::~Wire() {
  if (fd_ >= 0) ::close(fd_);
}

void Wire::send(const std::string& text) const { ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }

std::string Wire::receive(std::chrono::milliseconds patience) const {
  pollfd poll{fd_, POLLIN, 0};
  if (::poll(&poll, 1, static_cast<int>(patience.count())) <= 0) return "";
  std::string text(64 << 10, '\0');
  const ssize_t n = ::recv(fd_, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

Child::Child(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(std::string("socketpair: ") + std::strerror(errno));
  wire_ = Wire(ends[0]);
  Wire theirs(ends[1]);
  arguments.insert(arguments.begin(), "rank");
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid_ > 0) return;
  // dup2 to the same number would keep the flag that closes it on exec.
  if (theirs.fd() == kWireFd)
    ::fcntl(kWireFd, F_SETFD, 0);
  else
    ::dup2(theirs.fd(), kWireFd);
  become(arguments, environment);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), wire_(std::move(other.wire_)), status_(other.status_) {}

Child::~Child() {
  if (pid_ <= 0 || status()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::signal(int number) const { ::kill(pid_, number); }

std::optional<int> Child::status() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

std::optional<int> Child::awaitEnd(std::chrono::milliseconds patience) {
  const int64_t until = now() + patience / std::chrono::nanoseconds(1);
  while (!status() && now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return status_;
}

Wire wireToHarness() {
  ::fcntl(kWireFd, F_SETFD, FD_CLOEXEC);
  return Wire(kWireFd);
}

std::string encodeId(const tuttiUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

tuttiUniqueId decodeId(const std::string& text) {
  tuttiUniqueId id{};
  for (size_t i = 0; i < sizeof id.internal && 2 * i + 1 < text.size(); ++i)
    id.internal[i] = static_cast<char>(std::strtol(text.substr(2 * i, 2).c_str(), nullptr, 16));
  return id;
}

Holdings holdings() {
  // A sanitizer starts a thread of its own with the first one of the program: it must not seem to be left behind.
  [[maybe_unused]] static const bool first = (std::thread([] {}).join(), true);
  // And a process keeps its window (src/window), once it has one.
  [[maybe_unused]] static const bool window = [] {
    void* memory = nullptr;
    return tuttiMemAlloc(&memory, 1) == tuttiSuccess && tuttiMemFree(memory) == tuttiSuccess;
  }();
  Holdings held;
  held.descriptors = count("/proc/self/fd") - 1;  // without the one that reads the directory
  held.threads = count("/proc/self/task");
  std::ifstream memory("/proc/self/statm");
  long whole = 0, resident = 0;
  memory >> whole >> resident;
  held.residentKiB = resident * ::sysconf(_SC_PAGESIZE) / 1024;
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const auto heap = ::mallinfo2();
  held.allocatedKiB = static_cast<long>((heap.uordblks + heap.hblkhd) / 1024);
#endif
  return held;
}

Holdings awaitHoldings(const Holdings& before, std::chrono::milliseconds patience) {
  const int64_t until = now() + patience / std::chrono::nanoseconds(1);
  Holdings held = holdings();
  while ((held.descriptors > before.descriptors || held.threads > before.threads) && now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    held = holdings();
  }
  return held;
}

std::string descriptorNames() {
  std::string names;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = fs::read_symlink(entry.path(), gone);
    if (!gone) names += (names.empty() ? "" : " ") + entry.path().filename().string() + "=" + target.string();
  }
  return names;
}

Scratch::Scratch() {
  std::string name = fs::temp_directory_path() / "faults-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> Scratch::left() const {
  std::vector<std::string> files;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(path_)) files.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator("/dev/shm", absent))
    if (entry.path().filename().string().find("tutti") != std::string::npos) files.push_back(entry.path());
  return files;
}

}  // namespace tutti::faults
