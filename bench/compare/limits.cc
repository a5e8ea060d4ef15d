// What the machine can do at best, in the same run as the systems that are compared: copies, a cache line between two
// processors, sockets of the loopback device and between two network namespaces, and collectives of threads that see
// all vectors.
//
//     compare_limits --cells FILE --counts 2,4,8 --cpus 0,1 --out FILE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include "kernels.h"
#include "method.h"

namespace tutti::compare {
namespace {

// Threads, each on a processor of its own, that do the same again and again, begun and timed together.
class Crew {
 public:
  Crew(std::vector<int> cpus, size_t most, double budget) : cpus_(std::move(cpus)), budget_(budget) {
    if (cpus_.size() > most) cpus_.resize(most);
  }
  size_t size() const { return cpus_.size(); }

  // Seconds of work(thread) on the slowest thread: the median of batches.
  template <class Work>
  double time(const Work& work) {
    std::vector<double> seconds(size()), results;
    long calls = 1;
    bool settled = false, done = false;
    const auto begin = std::chrono::steady_clock::now();
    const auto judge = [&] {
      const double slowest = *std::max_element(seconds.begin(), seconds.end());
      if (settled) results.push_back(slowest / static_cast<double>(calls));
      const double spent = secondsSince(begin);
      done = (results.size() >= 3 && spent > budget_) || (!results.empty() && spent > kPatience);
      if (settled) return;
      settled = slowest > kBatch / 2;
      if (!settled)
        calls = std::lround(std::ceil(static_cast<double>(calls) * std::clamp(kBatch / (slowest + 1e-9), 2.0, 20.0)));
    };
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < size(); ++thread) {
      threads.emplace_back([&, thread] {
        stayOn(cpus_, static_cast<int>(thread));
        while (!done) {
          meet(thread, [] {});
          const auto start = std::chrono::steady_clock::now();
          for (long i = 0; i < calls; ++i) work(thread);
          seconds[thread] = secondsSince(start);
          meet(thread, judge);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return medianOf(results);
  }

  // All threads come here; the first one does that before they go on.
  template <class Task>
  void meet(size_t thread, const Task& task) {
    const long turn = flags_[thread].turn.load(std::memory_order_relaxed) + 1;
    if (thread != 0) {
      flags_[thread].turn.store(turn, std::memory_order_release);  // acquired by the first one
      while (flags_[0].turn.load(std::memory_order_acquire) < turn) {
      }
      return;
    }
    for (size_t other = 1; other < size(); ++other) {
      while (flags_[other].turn.load(std::memory_order_acquire) < turn) {
      }
    }
    task();
    flags_[0].turn.store(turn, std::memory_order_release);  // acquired by all others
  }

 private:
  // Seconds. Where others want the processors a word may wait for a slice of theirs: what is measured then says little,
  // and one batch of it is enough.
  static constexpr double kBatch = 0.004, kPatience = 1;
  static constexpr size_t kMostThreads = 256;
  struct alignas(128) Flag {
    std::atomic<long> turn{0};
  };
  std::vector<int> cpus_;
  double budget_;
  Flag flags_[kMostThreads];
};

// Sockets are of the network namespace that their thread is in when they are made. An empty path: of the one it has.
class InNamespace {
 public:
  explicit InNamespace(const std::string& path) {
    if (path.empty()) return;
    before_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (before_ < 0 || !enter(open(path.c_str(), O_RDONLY | O_CLOEXEC)))
      throw std::runtime_error("cannot enter the network namespace " + path);
  }
  ~InNamespace() {
    if (before_ >= 0 && !enter(before_)) std::abort();  // what comes would be of the wrong one
  }
  InNamespace(const InNamespace&) = delete;
  InNamespace& operator=(const InNamespace&) = delete;

 private:
  static bool enter(int space) {
    const bool done = setns(space, CLONE_NEWNET) == 0;
    close(space);
    return done;
  }
  int before_ = -1;
};

// Two ends of a connection, neither of which ever sleeps: over the loopback device, or between two namespaces, of which
// the first one has the address.
class SocketPair {
 public:
  SocketPair() : SocketPair("", "", "127.0.0.1") {}
  SocketPair(const std::string& first, const std::string& second, const std::string& where) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (inet_pton(AF_INET, where.c_str(), &address.sin_addr) != 1) throw std::runtime_error(where + " is no address");
    const int listener = listenAt(first, address);
    connectTo(second, address);
    ends_[1] = accept(listener, nullptr, nullptr);
    close(listener);
    for (const int end : ends_) {
      const int on = 1;
      setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      fcntl(end, F_SETFL, O_NONBLOCK);
    }
  }
  ~SocketPair() {
    for (const int end : ends_) close(end);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  // Sends and receives so many bytes at once; nullptr: none that way.
  void move(size_t end, const char* from, char* to, size_t bytes) const {
    size_t sent = from == nullptr ? bytes : 0, received = to == nullptr ? bytes : 0;
    while (sent < bytes || received < bytes) {
      if (sent < bytes) sent += moved(send(ends_[end], from + sent, std::min(kMost, bytes - sent), MSG_NOSIGNAL));
      if (received < bytes) received += moved(recv(ends_[end], to + received, std::min(kMost, bytes - received), 0));
    }
  }

 private:
  // At any port, which it puts into the address.
  static int listenAt(const std::string& space, sockaddr_in& address) {
    const InNamespace there(space);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof address;
    auto* general = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, general, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, general, &length) != 0)
      throw std::runtime_error("cannot listen");
    return listener;
  }
  void connectTo(const std::string& space, const sockaddr_in& address) {
    const InNamespace there(space);
    ends_[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends_[0], reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("no connection to oneself");
  }

  static constexpr size_t kMost = 256 << 10;
  static size_t moved(ssize_t result) { return result > 0 ? static_cast<size_t>(result) : 0; }
  int ends_[2];
};

class Limits {
 public:
  explicit Limits(const Arguments& arguments)
      : arguments_(arguments), cells_(readCells(arguments.cells)), file_(std::fopen(arguments.out.c_str(), "a")) {
    if (file_ == nullptr) throw std::runtime_error("cannot write " + arguments.out);
    if (arguments.cpus.empty()) throw std::runtime_error("--cpus has to name the processors");
    for (const Cell& cell : cells_) largest_ = std::max(largest_, cell.bytes);
  }

  void measureAll() {
    measureMemcpy(1);
    if (arguments_.cpus.size() > 1) {
      measureMemcpy(arguments_.cpus.size());
      measureLine();
      measureSockets(SocketPair(), "tcp");
      if (const auto& hosts = arguments_.hosts; hosts.size() == 2)
        measureSockets(SocketPair(hosts[0], hosts[1], arguments_.address), "namespaces");
    }
    for (const int ranks : arguments_.counts) measureFloor(ranks);
  }

 private:
  // `line`: what a word to another processor and back took meanwhile; 0: not known.
  void tell(const char* config, const char* op, const char* transport, size_t ranks, size_t bytes, double seconds,
            double line = 0) {
    std::fprintf(file_,
                 "{\"config\": \"%s\", \"op\": \"%s\", \"transport\": \"%s\", \"ranks\": %zu, \"bytes\": %zu, "
                 "\"us\": %.4f, \"line_us\": %s}\n",
                 config, op, transport, ranks, bytes, seconds * 1e6,
                 line > 0 ? std::to_string(line * 1e6).c_str() : "null");
    std::fflush(file_);
  }

  std::vector<size_t> sizes() const {
    std::vector<size_t> sizes;
    for (const Cell& cell : cells_) sizes.push_back(cell.bytes);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
  }

  // The processor's memory is where a thread that stays on it writes first.
  std::vector<float> vectorOn(int cpu, size_t bytes) const {
    std::vector<float> vector;
    std::thread([&] {
      stayOn({cpu}, 0);
      vector.assign(bytes / sizeof(float) + kLineFloats, 1.0F);
    }).join();
    return vector;
  }
  static float* alignedIn(std::vector<float>& vector) {
    return vector.data() + (64 - reinterpret_cast<uintptr_t>(vector.data()) % 64) % 64 / sizeof(float);
  }

  void measureMemcpy(size_t threads) {
    Crew crew(arguments_.cpus, threads, arguments_.budget);
    std::vector<std::vector<float>> from, to;
    for (size_t i = 0; i < crew.size(); ++i) {
      from.push_back(vectorOn(arguments_.cpus[i], largest_));
      to.push_back(vectorOn(arguments_.cpus[i], largest_));
    }
    for (const size_t bytes : sizes()) {
      const double seconds = crew.time([&](size_t i) {
        std::memcpy(to[i].data(), from[i].data(), bytes);
        asm volatile("" ::"r"(to[i].data()) : "memory");  // or it might be left out
      });
      tell("memcpy", "memcpy", "memory", crew.size(), bytes, seconds);
    }
  }

  void measureLine() { tell("cache line", "round_trip", "memory", 2, 64, thereAndBack(arguments_.budget)); }

  // Of a word to another processor; 0 where there is none.
  double thereAndBack(double budget) const {
    if (arguments_.cpus.size() < 2) return 0;
    struct alignas(128) Line {
      std::atomic<long> value{0};
    } lines[2];
    return Crew(arguments_.cpus, 2, budget).time([&](size_t thread) {
      const long turn = lines[thread].value.load(std::memory_order_relaxed) + 1;
      if (thread == 0) lines[0].value.store(turn, std::memory_order_release);  // acquired by the other, and the reverse
      while (lines[1 - thread].value.load(std::memory_order_acquire) < turn) {
      }
      if (thread == 1) lines[1].value.store(turn, std::memory_order_release);
    });
  }

  void measureSockets(const SocketPair& pair, const char* transport) {
    Crew crew(arguments_.cpus, 2, arguments_.budget);
    for (const size_t bytes : sizes()) {
      std::vector<char> memory[4];
      for (std::vector<char>& one : memory) one.resize(bytes);
      const auto move = [&](size_t thread, bool sends, bool receives) {
        pair.move(thread, sends ? memory[thread].data() : nullptr, receives ? memory[2 + thread].data() : nullptr,
                  bytes);
      };
      tell("socket", "exchange", transport, 2, bytes, crew.time([&](size_t thread) { move(thread, true, true); }));
      tell("socket", "stream", transport, 2, bytes,
           crew.time([&](size_t thread) { move(thread, thread == 0, thread == 1); }));
      tell("socket", "round_trip", transport, 2, bytes, crew.time([&](size_t thread) {
        move(thread, thread == 0, thread == 1);
        move(thread, thread == 1, thread == 0);
      }));
    }
  }

  // Each vector of `ranks` ranks is seen by all threads, of which there are no more than processors.
  void measureFloor(int ranks) {
    std::vector<std::vector<float>> vectors[2];
    std::vector<float*> from, to;
    for (int rank = 0; rank < ranks; ++rank) {
      for (auto& side : vectors) {
        side.push_back(vectorOn(arguments_.cpus[static_cast<size_t>(rank) % arguments_.cpus.size()],
                                largest_ + 64 * static_cast<size_t>(ranks)));
      }
    }
    for (auto& vector : vectors[0]) from.push_back(alignedIn(vector));
    for (auto& vector : vectors[1]) to.push_back(alignedIn(vector));
    Crew crew(arguments_.cpus, static_cast<size_t>(ranks), arguments_.budget);
    double before = thereAndBack(0);
    for (const Cell& cell : cells_) {
      const double seconds = std::min(floorOf<false>(crew, cell, from, to), floorOf<true>(crew, cell, from, to));
      const double behind = thereAndBack(0);
      tell("direct map", nameOf(cell.operation), "shm", from.size(), cell.bytes, seconds, lineOf(before, behind));
      before = behind;
    }
  }

  template <bool kAround>
  static double floorOf(Crew& crew, const Cell& cell, const std::vector<float*>& from, const std::vector<float*>& to) {
    return crew.time([&](size_t thread) {
      crew.meet(thread, [] {});
      work<kAround>(cell, from, to, thread, crew.size());
      crew.meet(thread, [] {});
    });
  }

  template <bool kAround>
  static void work(const Cell& cell, const std::vector<float*>& from, const std::vector<float*>& to, size_t thread,
                   size_t threads) {
    const auto ranks = static_cast<int>(from.size());
    const size_t whole = cell.whole(ranks), part = cell.part(ranks);
    if (cell.operation == Operation::kAllReduce) {
      const auto edge = [&](size_t i) {
        return i == threads ? whole : whole * i / threads / kLineFloats * kLineFloats;
      };
      sum<kAround>(to.data(), ranks, from.data(), ranks, edge(thread), edge(thread + 1));
      return;
    }
    for (size_t rank = thread; rank < from.size(); rank += threads) {
      switch (cell.operation) {
        case Operation::kAllGather:
          for (float* target : to) copy<kAround>(target + rank * part, from[rank], part);
          break;
        case Operation::kReduceScatter:
          sum<kAround>(&to[rank], 1, from.data(), ranks, rank * part, (rank + 1) * part);
          break;
        default:
          copy<kAround>(to[rank], from[0], whole);
      }
    }
  }

  Arguments arguments_;
  std::vector<Cell> cells_;
  FILE* file_;
  size_t largest_ = 0;
};

}  // namespace
}  // namespace tutti::compare

int main(int count, char** words) {
  using namespace tutti::compare;
  try {
    const Arguments arguments = parse(count, words);
    alarm(arguments.deadline);
    Limits(arguments).measureAll();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_limits: %s\n", error.what());
    return 2;
  }
}
