// UCC over UCX, whose transports the environment names.
#include <sched.h>
#include <ucc/api/ucc.h>

#include "method.h"

namespace tutti::compare {
namespace {

constexpr ucc_datatype_t kTypes[] = {UCC_DT_FLOAT32, UCC_DT_FLOAT64, UCC_DT_INT32, UCC_DT_FLOAT16, UCC_DT_BFLOAT16};

void require(ucc_status_t status) {
  if (status < 0) throw std::runtime_error(ucc_status_string(status));
}

// How UCC's set-up exchanges addresses: at the meeting, at once.
ucc_status_t exchange(void* from, void* to, size_t bytes, void* meeting, void** request) {
  static_cast<Meeting*>(meeting)->exchange(from, to, bytes);
  *request = meeting;
  return UCC_OK;
}
ucc_status_t atOnce(void*) { return UCC_OK; }

template <class Parameters>
void exchangeAt(Parameters& parameters, Meeting& meeting) {
  parameters.oob.allgather = exchange;
  parameters.oob.req_test = atOnce;
  parameters.oob.req_free = atOnce;
  parameters.oob.coll_info = &meeting;
  parameters.oob.n_oob_eps = static_cast<uint32_t>(meeting.ranks());
  parameters.oob.oob_ep = static_cast<uint32_t>(meeting.rank());
}

// Of the job, as a rank itself may be bound to one of them later.
const int kProcessors = [] {
  cpu_set_t allowed;
  const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  return known ? CPU_COUNT(&allowed) : static_cast<int>(std::thread::hardware_concurrency());
}();

class Ucc : public Peer {
 public:
  explicit Ucc(Meeting& meeting) : yields_(meeting.ranks() > kProcessors) {
    makeLibrary();
    makeContext(meeting);
    makeTeam(meeting);
  }

  // On a host, UCC has no sum of half-precision numbers.
  bool knows(const Cell& cell) const override { return cell.type != Type::kHalf || !cell.reduces(); }

  void run(const Call& call) override {
    ucc_coll_args_t arguments = argumentsOf(call);
    complete(arguments);
    const bool copies = call.cell.operation == Operation::kBroadcast && call.rank == 0 && !call.cell.inPlace;
    if (copies) std::memcpy(call.recv, call.send, call.wholeBytes());  // its broadcast is in place always
  }

  void barrier() override {
    ucc_coll_args_t arguments{};
    arguments.coll_type = UCC_COLL_TYPE_BARRIER;
    complete(arguments);
  }

 private:
  static constexpr int kPolls = 20;  // without anything, before others get the processor

  void makeLibrary() {
    ucc_lib_params_t parameters{};
    parameters.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCC_THREAD_SINGLE;
    ucc_lib_config_h config;
    require(ucc_lib_config_read(nullptr, nullptr, &config));
    require(ucc_init(&parameters, config, &library_));
    ucc_lib_config_release(config);
  }

  void makeContext(Meeting& meeting) {
    ucc_context_params_t parameters{};
    parameters.mask = UCC_CONTEXT_PARAM_FIELD_OOB | UCC_CONTEXT_PARAM_FIELD_TYPE;
    parameters.type = UCC_CONTEXT_SHARED;
    exchangeAt(parameters, meeting);
    ucc_context_config_h config;
    require(ucc_context_config_read(library_, nullptr, &config));
    require(ucc_context_create(library_, &parameters, config, &context_));
    ucc_context_config_release(config);
  }

  void makeTeam(Meeting& meeting) {
    ucc_team_params_t parameters{};
    parameters.mask = UCC_TEAM_PARAM_FIELD_OOB | UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE;
    exchangeAt(parameters, meeting);
    parameters.ep = static_cast<uint64_t>(meeting.rank());
    parameters.ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG;
    require(ucc_team_create_post(&context_, 1, &parameters, &team_));
    ucc_status_t status;
    while ((status = ucc_team_create_test(team_)) > 0) ucc_context_progress(context_);
    require(status);
  }

  void complete(ucc_coll_args_t& arguments) {
    ucc_coll_req_h request;
    require(ucc_collective_init(&arguments, &request, team_));
    require(ucc_collective_post(request));
    ucc_status_t status;
    for (int polls = 0; (status = ucc_collective_test(request)) > 0; ++polls) {
      ucc_context_progress(context_);
      if (yields_ && polls > kPolls) sched_yield();
    }
    require(status);
    ucc_collective_finalize(request);
  }

  static ucc_coll_buffer_info_t buffer(const Call& call, void* memory, size_t count) {
    ucc_coll_buffer_info_t info{};
    info.buffer = memory;
    info.count = count;
    info.datatype = kTypes[static_cast<size_t>(call.cell.type)];
    info.mem_type = UCC_MEMORY_TYPE_HOST;
    return info;
  }

  static ucc_coll_args_t argumentsOf(const Call& call) {
    ucc_coll_args_t arguments{};
    arguments.op = UCC_OP_SUM;
    if (call.cell.inPlace) {
      arguments.mask = UCC_COLL_ARGS_FIELD_FLAGS;
      arguments.flags = UCC_COLL_ARGS_FLAG_IN_PLACE;
    }
    switch (call.cell.operation) {
      case Operation::kAllReduce:
        arguments.coll_type = UCC_COLL_TYPE_ALLREDUCE;
        arguments.src.info = buffer(call, call.send, call.whole);
        arguments.dst.info = buffer(call, call.recv, call.whole);
        break;
      case Operation::kAllGather:
        arguments.coll_type = UCC_COLL_TYPE_ALLGATHER;
        arguments.src.info = buffer(call, call.cell.inPlace ? call.own(call.recv) : call.send, call.part);
        arguments.dst.info = buffer(call, call.recv, call.whole);
        break;
      case Operation::kReduceScatter:  // in place, the output names the whole vector
        arguments.coll_type = UCC_COLL_TYPE_REDUCE_SCATTER;
        arguments.src.info = buffer(call, call.send, call.whole);
        arguments.dst.info = buffer(call, call.recv, call.cell.inPlace ? call.whole : call.part);
        break;
      case Operation::kBroadcast:
        arguments.coll_type = UCC_COLL_TYPE_BCAST;
        arguments.mask = 0;
        arguments.flags = 0;
        arguments.src.info = buffer(call, call.rank == 0 ? call.send : call.recv, call.whole);
        break;
    }
    return arguments;
  }

  bool yields_;
  ucc_lib_h library_ = nullptr;
  ucc_context_h context_ = nullptr;
  ucc_team_h team_ = nullptr;
};

}  // namespace
}  // namespace tutti::compare

int main(int count, char** words) {
  using namespace tutti::compare;
  try {
    const int status = runDriver(parse(count, words),
                                 [](const Arguments&, Meeting& meeting) { return std::make_unique<Ucc>(meeting); });
    std::_Exit(status);  // the system takes back what it has
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ucc_driver: %s\n", error.what());
    return 2;
  }
}
