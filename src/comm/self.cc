#include "comm/self.h"

#include <array>
#include <bit>
#include <utility>

#include "detect/rdma.h"
#include "device/device.h"
#include "diagnose/preflight.h"
#include "diagnose/respond.h"
#include "process/log.h"
#include "team/agreement.h"
#include "topology/peer_info.h"

namespace tutti::comm {
namespace {

// Its links go by what is near the GPU, wherever the thread may run.
void describeGpu(const Config& config, topology::PeerInfo& info) {
  const auto device = device::openDevice(config.device);
  const auto words = std::bit_cast<std::array<uint64_t, 2>>(device->traits().uuid);
  info.device = config.device;
  info.gpu = words[0] ^ std::rotl(words[1], 1);
  info.gpuBusId = device->traits().busId;
  info.gpuBlocks = device->freeBlocks();
  if (const auto node = detect::Sysfs("").number("/sys/bus/pci/devices/" + info.gpuBusId + "/numa_node");
      node && *node >= 0)
    info.numaNode = static_cast<int32_t>(*node);
  std::string why;
  info.gpuQueues = device->streamsWait(why) ? config.gpuQueues : 0;
  info.gpuEngine = static_cast<uint8_t>(config.engine);
  if (!why.empty()) log::info("{}", why);
}

topology::PeerInfo describeSelf(const Config& config, const Network& network) {
  topology::PeerInfo info = topology::describeSelf();
  if (config.device >= 0) describeGpu(config, info);
  info.unixSockets = network.unixSockets;
  info.wantsPreflight = config.preflight && mayLookAtHosts();
  info.networkMegabits = firstMegabits(network);
  info.lacks = registryFor(config).lacks(info);
  if (!info.lacks.contains("verbs"))
    info.rdmaMegabits = detect::rdmaMegabits(detect::Sysfs(""), config.transportSettings.values.at("TUTTI_IB_HCA"));
  return info;
}

}  // namespace

Self Self::find(const Config& config) try {
  Self self{{}, Network::fromEnvironment(), {}};
  self.info = topology::encode(describeSelf(config, self.network));
  return self;
} catch (const Error& error) {
  return lacking({error.code(), error.what()});
}

Self Self::lacking(control::Refusal why) { return {{}, Network::asFarAsReadable(), std::move(why)}; }

void Self::check() const {
  if (lack) throw Error(lack->code, lack->text);
}

control::JoinRequest requestFor(const Config& config, const Self& self, std::shared_ptr<const Recorder> recorder) {
  control::JoinRequest request;
  request.info = self.info;
  request.network = self.network;
  request.deadline = Deadline::in(config.joinTimeout);
  request.heartbeat = config.heartbeat;
  request.encrypt = config.encrypt;
  request.agreement = agreementOf(config);
  request.respond = respondFrom(recorder);
  // What is queued on a GPU may have ended with its driver, which is not to be asked when a process ends.
  if (config.device < 0) request.busy = [recorder = std::move(recorder)] { return recorder->busy(); };
  return request;
}

}  // namespace tutti::comm
