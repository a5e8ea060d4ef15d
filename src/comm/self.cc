#include "comm/self.h"

#include <array>
#include <bit>

#include "device/device.h"
#include "diagnose/respond.h"
#include "process/log.h"
#include "team/agreement.h"
#include "topology/card.h"

namespace tutti::comm {
namespace {

topology::Card describeSelf(const Config& config, const Network& network) {
  topology::Card card = topology::describeSelf();
  card.unixSockets = network.unixSockets;
  if (config.device < 0) return card;
  const auto device = device::openDevice(config.device);
  const auto words = std::bit_cast<std::array<uint64_t, 2>>(device->traits().uuid);
  card.device = config.device;
  card.gpu = words[0] ^ std::rotl(words[1], 1);
  card.gpuBlocks = device->freeBlocks();
  std::string why;
  card.gpuQueues = device->streamsWait(why) ? config.gpuQueues : 0;
  card.gpuEngine = static_cast<uint8_t>(config.engine);
  if (!why.empty()) log::info("{}", why);
  return card;
}

}  // namespace

Self Self::find(const Config& config) {
  Self self{{}, Network::fromEnvironment(), {}};
  try {
    self.card = topology::encode(describeSelf(config, self.network));
  } catch (const Error& error) {
    self.lack = {error.code(), error.what()};
  }
  return self;
}

void Self::check() const {
  if (lack) throw Error(lack->code, lack->text);
}

control::JoinRequest requestFor(const Config& config, const Self& self, std::shared_ptr<const Recorder> recorder) {
  control::JoinRequest request;
  request.card = self.card;
  request.network = self.network;
  request.deadline = Deadline::in(config.joinTimeout);
  request.heartbeat = config.heartbeat;
  request.encrypt = config.encrypt;
  request.agreement = agreementOf(config);
  request.respond = respondFrom(std::move(recorder));
  return request;
}

}  // namespace tutti::comm
