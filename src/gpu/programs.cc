#include "gpu/programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/program.h"
#include "process/log.h"

namespace tutti::gpu {
namespace {

constexpr size_t kArenaBytes = 4 << 20;
constexpr uint32_t kScratchBytes = slots::kScratchBytesOnGpu;
// Bytes of a message between two ranks, judgements: up to which latency counts most, and up to which one block does.
constexpr size_t kShortMessage = 16 << 10, kMessageOfOneChannel = 64 << 10;

uint32_t slotBytesOf(Protocol protocol, const GpuLayout& shape, bool streamed, bool scratches) {
  const uint32_t bytes = streamed ? shape.streamSlotBytes : shape.slotBytes[protocol];
  return scratches ? std::min(bytes, kScratchBytes) : bytes;
}

size_t bytesOfMessage(const comm::Call& message) { return message.count * sizeOf(message.type); }

// Of a message between two ranks: what is the best for its length, or what is like it.
Protocol protocolOf(size_t bytes, plan::AllowedProtocols allowed, bool linesMoveWhole) {
  constexpr Protocol kShort[] = {Protocol::kLL, Protocol::kLL128, Protocol::kSimple};
  constexpr Protocol kLong[] = {Protocol::kSimple, Protocol::kLL128, Protocol::kLL};
  const auto& wanted = bytes <= kShortMessage ? kShort : kLong;
  const plan::AllowedProtocols some = plan::protocolsFor(allowed, linesMoveWhole);
  return *std::ranges::find_if(wanted, [&](Protocol each) { return plan::mayTake(each, some, linesMoveWhole); });
}

}  // namespace

// As if every schedule had scratch buffers: those of the largest jobs that have none lose an algorithm by that.
plan::DeviceMachine deviceMachine(const GpuLayout& shape, bool streamed) {
  plan::DeviceMachine machine;
  machine.ranks = shape.size;
  machine.hosts = shape.links.hosts, machine.ranksPerHost = shape.links.ranksPerHost;
  machine.gpuGBs = shape.links.gpuGBs, machine.ringGBs = shape.links.ringGBs;
  machine.nicGBs = shape.links.nicGBs, machine.networkGBs = shape.links.networkGBs;
  machine.channels = static_cast<int>(shape.channels);
  machine.linesMoveWhole = shape.linesMoveWhole;
  if (streamed) machine.mostLinks = device::kMostFolded - 2;  // the input, or the output, may come on top
  for (const Protocol each : kEveryProtocol)
    machine.mostSegments[each] = slotBytesOf(each, shape, streamed, true) / rowOf(each).grain.bytes;
  return machine;
}

uint32_t deviceChunkBytes(const schedule::Schedule& schedule, Protocol protocol, const GpuLayout& shape,
                          bool streamed) {
  const uint32_t slotBytes = slotBytesOf(protocol, shape, streamed, schedule.scratches > 0);
  const uint32_t bytes = device::chunkBytes(protocol, slotBytes, schedule.maxSpan);
  if (bytes < kLargestElement)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{} by {} over {} on {} GPUs puts {} segments into a slot of {} bytes, which leaves less "
                            "than an element for each; choose another algorithm or protocol (TUTTI_ALGO, "
                            "TUTTI_PROTOCOL, or the configuration)",
                            nameOf(schedule.collective), nameOf(schedule.algorithm), nameOf(protocol), schedule.size,
                            schedule.maxSpan, slotBytes));
  return bytes;
}

void requireRankOrder(const schedule::Request& request, schedule::Algorithm chosen,
                      const plan::DeviceMachine& machine) {
  const schedule::AlgorithmRow& row = schedule::rowOf(chosen);
  const bool hasLinks = !row.linksToAll || machine.ranks - 1 <= machine.mostLinks;
  if (!request.inRankOrder || (row.can(request) && hasLinks)) return;
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("{} of floating-point values in the order of the ranks (TUTTI_REPRODUCIBLE, or reproducible "
                          "in the configuration) needs links from each rank to all others, of which a GPU serves {}: "
                          "{} GPUs are too many; ask for it on up to {}, or on host memory",
                          nameOf(request.collective), machine.mostLinks, machine.ranks, machine.mostLinks + 1));
}

DevicePrograms::DevicePrograms(int rank, const comm::Config& config, const GpuLayout& shape, std::vector<int> groupOf,
                               std::vector<int> within, device::Device& device)
    : rank_(rank),
      config_(config),
      shape_(shape),
      groupOf_(std::move(groupOf)),
      within_(std::move(within)),
      device_(device),
      arena_(device.allocate(kArenaBytes)),
      scratch_(device.allocate(std::max<size_t>(1, mostScratches()) * std::max(1u, shape.channels) * kScratchBytes)) {}

uint32_t DevicePrograms::mostScratches() const {
  uint32_t most = 0;
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective == Collective::kSendRecv) continue;
    for (const auto algorithm : schedule::algorithmsFor(collective))
      most = std::max<uint32_t>(
          most, schedule::build(algorithm, {collective, shape_.size, 0, groupOf_, within_}, rank_).scratches);
  }
  return most;
}

schedule::Allowed DevicePrograms::algorithmsOf(const comm::Call& call) const {
  return call.wish.algorithmsFrom(config_.algorithms.of(call.collective));
}

plan::AllowedProtocols DevicePrograms::protocolsOf(Collective collective) const {
  return shape_.bridged ? Protocol::kSimple : config_.protocols.of(collective);
}

schedule::Request DevicePrograms::requestOf(const comm::Call& call) const noexcept {
  return {call.collective, call.planBytes(shape_.size), comm::isReproducible(config_, call)};
}

plan::DevicePlan DevicePrograms::weigh(const comm::Call& call) const {
  const schedule::Request request = requestOf(call);
  return plan::weighDevice(request, deviceMachine(shape_, false), algorithmsOf(call), protocolsOf(call.collective),
                           call.wish.channelsFrom(config_.channels.of(call.collective)));
}

plan::DeviceChoice DevicePrograms::choose(const comm::Call& call) const { return weigh(call).best; }

plan::DeviceChoice DevicePrograms::chooseStreamed(const comm::Call& call) const {
  if (call.collective == Collective::kSendRecv) return {schedule::Algorithm::kDirect, Protocol::kSimple, 0, 0};
  const schedule::Request request = requestOf(call);
  plan::DeviceChoice choice = plan::chooseStreamed(request, deviceMachine(shape_, true), algorithmsOf(call));
  choice.channels = 0;
  return choice;
}

plan::DeviceChoice DevicePrograms::chooseMessage(const comm::Call& call) const {
  const size_t bytes = bytesOfMessage(call);
  const Protocol protocol = protocolOf(bytes, protocolsOf(Collective::kSendRecv), shape_.linesMoveWhole);
  const int channels = bytes <= kMessageOfOneChannel ? 1 : static_cast<int>(shape_.messageChannels);
  return {schedule::Algorithm::kDirect, protocol, channels, 0};
}

const DeviceProgram& DevicePrograms::find(const comm::Call& call, bool streamed) {
  const bool message = call.collective == Collective::kSendRecv;
  const size_t bytes = message ? bytesOfMessage(call) : call.planBytes(shape_.size);
  const int place = message && !call.sends ? ~call.root : call.root;
  const bool inRankOrder = comm::isReproducible(config_, call);
  const auto question = comm::PlanQuestion::of(call.collective, place, bytes, call.wish.bits(), inRankOrder, streamed);
  return programs_.find(question, [&]() -> DeviceProgram& {
    const plan::DeviceChoice choice = streamed ? chooseStreamed(call) : message ? chooseMessage(call) : choose(call);
    requireRankOrder(requestOf(call), choice.algorithm, deviceMachine(shape_, streamed));
    return programs_.made({call.collective, choice.algorithm, place, choice.protocol, choice.channels},
                          [&] { return streamed ? makeStreamed(call, choice) : make(call, choice); });
  });
}

schedule::Schedule DevicePrograms::build(const comm::Call& call, schedule::Algorithm algorithm, int depth) const {
  if (call.collective != Collective::kSendRecv)
    return schedule::build(algorithm, {call.collective, shape_.size, call.root, groupOf_, within_, depth}, rank_);
  return call.sends ? schedule::buildSend(rank_, shape_.size, call.root)
                    : schedule::buildReceive(rank_, shape_.size, call.root);
}

std::unique_ptr<DeviceProgram> DevicePrograms::make(const comm::Call& call, const plan::DeviceChoice& choice) {
  auto made = std::make_unique<DeviceProgram>();
  made->schedule = build(call, choice.algorithm, static_cast<int>(shape_.depth));
  made->protocol = choice.protocol;
  made->channels = static_cast<uint32_t>(choice.channels);
  const schedule::Schedule& schedule = made->schedule;
  made->chunkBytes = deviceChunkBytes(schedule, choice.protocol, shape_, false);
  if (schedule.depth > shape_.depth || schedule.inPeers.size() > device::kMaxLinks ||
      schedule.outPeers.size() > device::kMaxLinks)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{} by {} on {} GPUs needs more links or slots than a block has; choose another algorithm",
                            nameOf(call.collective), nameOf(choice.algorithm), shape_.size));
  made->program = upload(schedule, kScratchBytes);
  log::info("{} of {} bytes on GPUs: {} over {}, {} channel{}, predicted {:.1f} us", nameOf(call.collective),
            call.planBytes(shape_.size), nameOf(choice.algorithm), nameOf(choice.protocol), choice.channels,
            choice.channels == 1 ? "" : "s", choice.predictedUs);
  return made;
}

std::unique_ptr<DeviceProgram> DevicePrograms::makeStreamed(const comm::Call& call, const plan::DeviceChoice& choice) {
  auto made = std::make_unique<DeviceProgram>();
  made->schedule = build(call, choice.algorithm, GpuLayout::kStreamDepth);
  const schedule::Schedule& schedule = made->schedule;
  made->chunkBytes = deviceChunkBytes(schedule, Protocol::kSimple, shape_, true);
  const bool narrow = std::ranges::all_of(schedule.steps, [](const schedule::Step& step) {
    return step.fromCount <= device::kMostFolded && step.toCount <= device::kMostFolded;
  });
  if (schedule.depth > GpuLayout::kStreamDepth || !narrow)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{} by {} on {} GPUs needs more slots than a link has, or more links than a step may have; "
                            "choose another algorithm",
                            nameOf(call.collective), nameOf(choice.algorithm), shape_.size));
  made->program.scratch = scratch_->data;
  made->program.scratchBytes = kScratchBytes;
  log::info("{} of {} bytes on GPUs: {} in streams, {} bytes of a segment in a slot, predicted {:.1f} us",
            nameOf(call.collective), call.planBytes(shape_.size), nameOf(choice.algorithm), made->chunkBytes,
            choice.predictedUs);
  return made;
}

template <class T>
const T* DevicePrograms::place(const std::vector<T>& list) {
  const size_t bytes = list.size() * sizeof(T);
  const size_t at = (used_ + 15) / 16 * 16;
  if (at + bytes > arena_->bytes)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("this communicator has so many different operations that their schedules fill {} bytes",
                            arena_->bytes));
  if (bytes > 0) device_.copy(arena_->data + at, list.data(), bytes);
  used_ = at + bytes;
  return reinterpret_cast<const T*>(arena_->data + at);
}

device::Program DevicePrograms::upload(const schedule::Schedule& schedule, uint32_t scratchBytes) {
  device::Program program;
  program.steps = place(schedule.steps);
  program.operands = place(schedule.operands);
  program.inPeers = place(schedule.inPeers);
  program.outPeers = place(schedule.outPeers);
  program.scratch = scratch_->data;
  program.stepCount = static_cast<uint32_t>(schedule.steps.size());
  program.scratchBytes = scratchBytes;
  program.inCount = static_cast<uint16_t>(schedule.inPeers.size());
  program.outCount = static_cast<uint16_t>(schedule.outPeers.size());
  program.scratches = schedule.scratches;
  program.maxLag = schedule.maxLag;
  return program;
}

}  // namespace tutti::gpu
