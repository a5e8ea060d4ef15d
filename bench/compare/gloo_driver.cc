// Gloo, over TCP, which is all that it has on a host. Modes: "ring" and "bcube" name the algorithm of its all-reduce,
// "halving" is the older interface's halving and doubling. Reduce-scatter has the older interface only.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include "method.h"

namespace tutti::compare {
namespace {

// A store is taken by reference or by pointer, as Gloo's age is.
template <class Context, class Store, class Device>
void connect(Context& context, std::shared_ptr<Store> store, Device& device) {
  if constexpr (requires { context.connectFullMesh(store, device); })
    context.connectFullMesh(store, device);
  else
    context.connectFullMesh(*store, device);
}

class Gloo : public Peer {
 public:
  Gloo(const Arguments& arguments, Meeting& meeting) : mode_(arguments.mode) {
    gloo::transport::tcp::attr address;
    address.iface = arguments.interface;
    address.ai_family = AF_INET;
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(address);
    const auto folder = std::filesystem::path(arguments.meeting).parent_path();
    auto store = std::make_shared<gloo::rendezvous::FileStore>(folder.string());
    context_ = std::make_shared<gloo::rendezvous::Context>(meeting.rank(), meeting.ranks());
    connect(*context_, store, device);
  }

  bool knows(const Cell& cell) const override { return cell.type != Type::kBfloat16; }

  void prepare(const Call& call) override {
    switch (call.cell.type) {
      case Type::kFloat:
        return choose<float>(call);
      case Type::kDouble:
        return choose<double>(call);
      case Type::kInt32:
        return choose<int32_t>(call);
      default:
        return choose<gloo::float16>(call);
    }
  }

  void run(const Call& call) override { (this->*run_)(call); }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  void finish() override { older_.reset(); }

  // In place, the older reduce-scatter leaves the result at the start.
  const std::byte* result(const Call& call) const override { return call.recv; }

 private:
  using Run = void (Gloo::*)(const Call&);

  template <class Element>
  void choose(const Call& call) {
    const int count = static_cast<int>(call.whole);
    switch (call.cell.operation) {
      case Operation::kAllReduce:
        run_ = &Gloo::allReduce<Element>;
        if (mode_ != "halving") return;
        older_ = std::make_unique<gloo::AllreduceHalvingDoubling<Element>>(
            context_, std::vector<Element*>{elements<Element>(call.recv)}, count);
        run_ = &Gloo::runOlder;
        return;
      case Operation::kAllGather:
        run_ = &Gloo::allGather<Element>;
        return;
      case Operation::kReduceScatter:
        chooseReduceScatter<Element>(call, count);
        return;
      case Operation::kBroadcast:
        run_ = &Gloo::broadcast<Element>;
        return;
    }
  }

  // It reduces in place; out of place, that is done in memory of its own.
  template <class Element>
  void chooseReduceScatter(const Call& call, int count) {
    scratch_.resize(call.cell.inPlace ? 0 : call.wholeBytes());
    std::byte* memory = call.cell.inPlace ? call.send : scratch_.data();
    older_ = std::make_unique<gloo::ReduceScatterHalvingDoubling<Element>>(
        context_, std::vector<Element*>{elements<Element>(memory)}, count,
        std::vector<int>(static_cast<size_t>(call.ranks), static_cast<int>(call.part)));
    run_ = &Gloo::reduceScatter;
  }

  template <class Element>
  static Element* elements(std::byte* memory) {
    return reinterpret_cast<Element*>(memory);
  }

  template <class Element>
  void allReduce(const Call& call) {
    gloo::AllreduceOptions options(context_);
    if (!call.cell.inPlace) options.setInput(elements<Element>(call.send), call.whole);
    options.setOutput(elements<Element>(call.recv), call.whole);
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<Element>));
    options.setAlgorithm(mode_ == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                          : gloo::AllreduceOptions::Algorithm::RING);
    gloo::allreduce(options);
  }

  template <class Element>
  void allGather(const Call& call) {
    gloo::AllgatherOptions options(context_);
    if (!call.cell.inPlace) options.setInput(elements<Element>(call.send), call.part);
    options.setOutput(elements<Element>(call.recv), call.whole);
    gloo::allgather(options);
  }

  template <class Element>
  void broadcast(const Call& call) {
    gloo::BroadcastOptions options(context_);
    if (call.rank == 0 && !call.cell.inPlace) options.setInput(elements<Element>(call.send), call.whole);
    options.setOutput(elements<Element>(call.recv), call.whole);
    options.setRoot(0);
    gloo::broadcast(options);
  }

  void runOlder(const Call& call) {
    if (!call.cell.inPlace) std::memcpy(call.recv, call.send, call.wholeBytes());
    older_->run();
  }

  void reduceScatter(const Call& call) {
    if (!call.cell.inPlace) std::memcpy(scratch_.data(), call.send, call.wholeBytes());
    older_->run();
    if (!call.cell.inPlace) std::memcpy(call.recv, scratch_.data(), call.partBytes());
  }

  std::string mode_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::unique_ptr<gloo::Algorithm> older_;
  std::vector<std::byte> scratch_;
  Run run_ = nullptr;
};

}  // namespace
}  // namespace tutti::compare

int main(int count, char** words) {
  using namespace tutti::compare;
  try {
    const int status = runDriver(parse(count, words), [](const Arguments& arguments, Meeting& meeting) {
      return std::make_unique<Gloo>(arguments, meeting);
    });
    std::_Exit(status);  // its threads are not always ready to end
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo_driver: %s\n", error.what());
    return 2;
  }
}
