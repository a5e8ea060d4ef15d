// Open MPI and MPICH, each with its own compiler. Modes: "ring" takes MPI_Reduce_scatter, which in Open MPI has a ring,
// instead of MPI_Reduce_scatter_block.
#include <mpi.h>

#include "method.h"

namespace tutti::compare {
namespace {

class Mpi : public Peer {
 public:
  explicit Mpi(const Arguments& arguments)
      : types_{MPI_FLOAT, MPI_DOUBLE, MPI_INT32_T, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL},
        ring_(arguments.mode == "ring"),
        counts_(static_cast<size_t>(arguments.ranks)) {}

  // MPI has no types of 16 bits that it would add as floating-point numbers.
  bool knows(const Cell& cell) const override { return typeOf(cell) != MPI_DATATYPE_NULL; }

  void prepare(const Call& call) override { std::fill(counts_.begin(), counts_.end(), static_cast<int>(call.part)); }

  void run(const Call& call) override {
    const MPI_Datatype type = typeOf(call.cell);
    const int whole = static_cast<int>(call.whole), part = static_cast<int>(call.part);
    const void* send = call.cell.inPlace ? MPI_IN_PLACE : call.send;
    switch (call.cell.operation) {
      case Operation::kAllReduce:
        MPI_Allreduce(send, call.recv, whole, type, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Operation::kAllGather:
        MPI_Allgather(send, part, type, call.recv, part, type, MPI_COMM_WORLD);
        break;
      case Operation::kReduceScatter:
        reduceScatter(call, send, type);
        break;
      case Operation::kBroadcast:
        broadcast(call, type);
        break;
    }
  }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  // In place, MPI leaves the result of a reduce-scatter at the start.
  const std::byte* result(const Call& call) const override { return call.recv; }

 private:
  MPI_Datatype typeOf(const Cell& cell) const { return types_[static_cast<size_t>(cell.type)]; }

  void reduceScatter(const Call& call, const void* send, MPI_Datatype type) {
    if (ring_)
      MPI_Reduce_scatter(send, call.recv, counts_.data(), type, MPI_SUM, MPI_COMM_WORLD);
    else
      MPI_Reduce_scatter_block(send, call.recv, static_cast<int>(call.part), type, MPI_SUM, MPI_COMM_WORLD);
  }

  // MPI's is in place always: out of place, the root has its own copy to make.
  static void broadcast(const Call& call, MPI_Datatype type) {
    const bool root = call.rank == 0;
    MPI_Bcast(root ? call.send : call.recv, static_cast<int>(call.whole), type, 0, MPI_COMM_WORLD);
    if (root && !call.cell.inPlace) std::memcpy(call.recv, call.send, call.wholeBytes());
  }

  MPI_Datatype types_[5];
  bool ring_;
  std::vector<int> counts_;
};

}  // namespace
}  // namespace tutti::compare

int main(int count, char** words) {
  using namespace tutti::compare;
  MPI_Init(&count, &words);  // errors end the job
  int status = 2;
  try {
    Arguments arguments = parse(count, words);
    MPI_Comm_rank(MPI_COMM_WORLD, &arguments.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &arguments.ranks);
    status = runDriver(arguments, [](const Arguments& known, Meeting&) { return std::make_unique<Mpi>(known); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_driver: %s\n", error.what());
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
