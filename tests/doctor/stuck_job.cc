// One rank of a job that goes wrong on purpose, in a way that tutti-doctor must find out from the records alone.
//
//   tutti_stuck_job CASE RANK SIZE FILE     the ranks meet by a unique id that rank 0 puts into FILE
//
// The environment says where records go and after what time a call gives up (TUTTI_DUMP_DIR,
// TUTTI_OPERATION_TIMEOUT_MS).
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tutti/tutti.h"

namespace {

void require(tuttiResult_t result, const char* what) {
  if (result == tuttiSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, tuttiGetLastError(nullptr));
  std::exit(2);
}

void handOut(const tuttiUniqueId& id, const std::string& path) {
  std::ofstream(path + ".part", std::ios::binary).write(id.internal, sizeof id.internal);
  if (std::rename((path + ".part").c_str(), path.c_str()) != 0) std::exit(2);
}

tuttiUniqueId waitForId(const std::string& path) {
  tuttiUniqueId id;
  for (;;) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

tuttiUniqueId meet(int rank, const std::string& path) {
  if (rank != 0) return waitForId(path);
  tuttiUniqueId id;
  require(tuttiGetUniqueId(&id), "tuttiGetUniqueId");
  handOut(id, path);
  return id;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Waits, apart from the library, until each rank is here. What goes wrong then is told to nobody who is still busy with
// the calls before.
void waitForAll(int rank, int size, const std::string& path) {
  const auto mark = [&](int of) { return path + ".ready" + std::to_string(of); };
  std::ofstream(mark(rank)).flush();
  for (int of = 0; of < size; ++of)
    while (!exists(mark(of))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class Rank {
 public:
  Rank(int rank, int size, const tuttiUniqueId& id) : rank_(rank), size_(size), data_(1 << 16) {
    require(tuttiCommInitRank(&comm_, size, id, rank), "tuttiCommInitRank");
    for (int i = 0; i < 3; ++i) require(sum(1024), "an all-reduce that must pass");
  }
  ~Rank() { tuttiCommDestroy(comm_); }

  tuttiResult_t sum(size_t count, tuttiDataType_t type = tuttiFloat32, tuttiRedOp_t op = tuttiSum) {
    return tuttiAllReduce(data_.data(), data_.data(), count, type, op, comm_, nullptr);
  }
  tuttiResult_t broadcast(int root) {
    return tuttiBroadcast(data_.data(), data_.data(), 1024, tuttiFloat32, root, comm_, nullptr);
  }
  tuttiResult_t receive(int peer) { return tuttiRecv(data_.data(), 1024, tuttiFloat32, peer, comm_, nullptr); }
  tuttiResult_t send(int peer, size_t count) {
    return tuttiSend(data_.data(), count, tuttiFloat32, peer, comm_, nullptr);
  }
  tuttiResult_t waitForFailure() {
    tuttiResult_t result = tuttiSuccess;
    while (tuttiCommGetAsyncError(comm_, &result) == tuttiSuccess && result == tuttiSuccess)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return result;
  }
  tuttiResult_t writeRecord() {
    const std::string path =
        std::string(std::getenv("TUTTI_DUMP_DIR")) + "/tutti-rank" + std::to_string(rank_) + ".json";
    require(tuttiCommDump(comm_, path.c_str()), "tuttiCommDump");
    return tuttiBarrier(comm_, nullptr);  // nobody leaves before all records are there
  }
  int rank() const { return rank_; }
  int next() const { return (rank_ + 1) % size_; }

 private:
  int rank_, size_;
  std::vector<double> data_;
  tuttiComm_t comm_ = nullptr;
};

tuttiResult_t die() {
  std::fflush(nullptr);
  ::raise(SIGKILL);
  return tuttiSuccess;
}

using Story = std::function<tuttiResult_t(Rank&)>;

const std::map<std::string, Story>& stories() {
  static const std::map<std::string, Story> all = {
      {"healthy", [](Rank& r) { return r.writeRecord(); }},
      {"kind", [](Rank& r) { return r.rank() == 1 ? r.broadcast(0) : r.sum(1024); }},
      {"count", [](Rank& r) { return r.sum(r.rank() < 2 ? 1024 : 2048); }},
      {"type", [](Rank& r) { return r.sum(1024, r.rank() == 3 ? tuttiFloat64 : tuttiFloat32); }},
      {"operator", [](Rank& r) { return r.sum(1024, tuttiFloat32, r.rank() == 0 ? tuttiMax : tuttiSum); }},
      {"root", [](Rank& r) { return r.broadcast(r.rank() == 2 ? 2 : 0), r.sum(1024); }},
      {"late", [](Rank& r) { return r.rank() == 2 ? r.waitForFailure() : r.sum(1024); }},
      {"dies", [](Rank& r) { return r.rank() == 3 ? die() : r.sum(1024); }},
      {"chain", [](Rank& r) { return r.rank() == 3 ? r.waitForFailure() : r.receive(r.next()); }},
      {"cycle", [](Rank& r) { return r.receive(r.next()); }},
      {"message",
       [](Rank& r) {
         if (r.rank() == 0) r.send(1, 512);
         return r.rank() == 1 ? r.receive(0) : r.waitForFailure();
       }},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || !stories().contains(argv[1])) {
    std::fprintf(stderr, "usage: tutti_stuck_job CASE RANK SIZE FILE\n");
    return 2;
  }
  const int number = std::atoi(argv[2]), size = std::atoi(argv[3]);
  Rank rank(number, size, meet(number, argv[4]));
  waitForAll(number, size, argv[4]);
  const tuttiResult_t result = stories().at(argv[1])(rank);
  std::printf("rank %d: %s: %s\n", number, tuttiGetErrorString(result), tuttiGetLastError(nullptr));
}
