// tutti, by its public C interface and with its defaults. Modes: "registered" takes memory that it knows.
#include <tutti/tutti.h>

#include <map>

#include "method.h"

namespace tutti::compare {
namespace {

constexpr tuttiDataType_t kTypes[] = {tuttiFloat32, tuttiFloat64, tuttiInt32, tuttiFloat16, tuttiBfloat16};

class Tutti : public Peer {
 public:
  Tutti(const Arguments& arguments, Meeting& meeting) : registered_(arguments.mode == "registered") {
    tuttiUniqueId ids[kMostRanks] = {};
    if (meeting.rank() == 0) require(tuttiGetUniqueId(&ids[0]));
    const tuttiUniqueId mine = ids[0];
    meeting.exchange(&mine, ids, sizeof mine);
    require(tuttiCommInitRank(&comm_, meeting.ranks(), ids[0], meeting.rank()));
  }
  ~Tutti() override { tuttiCommDestroy(comm_); }

  std::byte* allocate(size_t bytes) override {
    if (!registered_) return Peer::allocate(bytes);
    void *memory = nullptr, *handle = nullptr;
    require(tuttiMemAlloc(&memory, bytes));
    require(tuttiCommRegister(comm_, memory, bytes, &handle, 0));
    handles_.emplace(static_cast<std::byte*>(memory), handle);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) override {
    const auto handle = handles_.find(memory);
    if (handle == handles_.end()) return Peer::release(memory);
    tuttiCommDeregister(comm_, handle->second);
    tuttiMemFree(memory);
  }

  void run(const Call& call) override { require(start(call)); }
  void barrier() override { require(tuttiBarrier(comm_, nullptr)); }

 private:
  void require(tuttiResult_t result) const {
    if (result != tuttiSuccess) throw std::runtime_error(tuttiGetLastError(comm_));
  }

  tuttiResult_t start(const Call& call) {
    const tuttiDataType_t type = kTypes[static_cast<size_t>(call.cell.type)];
    const bool inPlace = call.cell.inPlace;
    switch (call.cell.operation) {
      case Operation::kAllReduce:
        return tuttiAllReduce(call.send, call.recv, call.whole, type, tuttiSum, comm_, nullptr);
      case Operation::kAllGather:
        return tuttiAllGather(inPlace ? call.own(call.recv) : call.send, call.recv, call.part, type, comm_, nullptr);
      case Operation::kReduceScatter:
        return tuttiReduceScatter(call.send, inPlace ? call.own(call.send) : call.recv, call.part, type, tuttiSum,
                                  comm_, nullptr);
      case Operation::kBroadcast:
        return tuttiBroadcast(call.send, call.recv, call.whole, type, 0, comm_, nullptr);
    }
    return tuttiInternalError;
  }

  bool registered_;
  std::map<std::byte*, void*> handles_;  // of what is registered
  tuttiComm_t comm_ = nullptr;
};

}  // namespace
}  // namespace tutti::compare

int main(int count, char** words) {
  using namespace tutti::compare;
  try {
    return runDriver(parse(count, words), [](const Arguments& arguments, Meeting& meeting) {
      return std::make_unique<Tutti>(arguments, meeting);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_tutti: %s\n", error.what());
    return 2;
  }
}
