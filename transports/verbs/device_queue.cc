#include "transports/verbs/device_queue.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>

namespace tutti::verbs {
namespace {

// A work request's number: its life, whether it waits for a note, and which write it is.
constexpr uint64_t kReceive = uint64_t{1} << 47;
constexpr uint64_t kCount = kReceive - 1;
constexpr uint64_t kMark = ~uint64_t{0};  // no other request's: of a queue pair that is stopped
constexpr uint64_t numberOf(uint32_t life, uint64_t rest) noexcept { return uint64_t{life & 0xffff} << 48 | rest; }

constexpr uint32_t kPacketMask = 0xffffff, kPacketsOfALife = 0x10000;
constexpr uint8_t kForEver = 7;            // retries of a receiver that expects no more notes just now
constexpr uint8_t kReceiverNotReady = 12;  // 0.64 ms
constexpr uint8_t kHops = 64;

uint32_t firstPacket(const QueueAddress& end, uint32_t life) noexcept {
  return (end.first + life * kPacketsOfALife) & kPacketMask;
}

int accessOf(bool relaxed) noexcept {
  return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | (relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0);
}

}  // namespace

DeviceQueue::DeviceQueue(const Port& port, const Behaviour& behaviour, const tuttiTransportEdge& edge, int mostNotes,
                         int mostWrites)
    : port_(port), behaviour_(behaviour), device_(Device::named(port.device)) {
  const GidEntry* const gid = chosenGid(port, behaviour.gidIndex);
  if (gid == nullptr && (port.isEthernet || behaviour.gidIndex >= 0))
    refused(fmt::format("{} has no address{}", port.name(),
                        behaviour.gidIndex >= 0 ? fmt::format(" of TUTTI_IB_GID_INDEX={}", behaviour.gidIndex) : ""),
            EADDRNOTAVAIL);
  if (gid != nullptr) {
    gidIndex_ = gid->index;
    own_.gid = gid->gid;
  }
  try {
    make(edge, mostNotes, mostWrites);
    own_.first = std::random_device{}() & kPacketMask;
  } catch (...) {
    release();
    throw;
  }
  own_.memory = reinterpret_cast<uintptr_t>(edge.memory);
  own_.key = memory_->rkey;
  own_.slots = reinterpret_cast<uintptr_t>(edge.gpuSlots.begin);
  own_.slotsKey = slots_ != nullptr ? slots_->rkey : 0;
  own_.number = pair_->qp_num;
  own_.lid = port.lid;
  own_.mtu = port.mtu;
  own_.isEthernet = port.isEthernet;
}

DeviceQueue::~DeviceQueue() { release(); }

void DeviceQueue::make(const tuttiTransportEdge& edge, int mostNotes, int mostWrites) {
  const ibv_device_attr& limits = device_->limits();
  ++mostWrites;  // for the mark behind the last one
  if (mostNotes > limits.max_qp_wr || mostWrites > limits.max_qp_wr || mostNotes + mostWrites > limits.max_cqe)
    refused(
        fmt::format("{} has room for {} requests and {} completions, fewer than a link takes ({} and {})", port_.name(),
                    limits.max_qp_wr, limits.max_cqe, std::max(mostNotes, mostWrites), mostNotes + mostWrites),
        ENOSPC);
  channel_ = ibv_create_comp_channel(device_->context());
  if (channel_ == nullptr) refused(port_.name() + " gives no channel for completions", errno);
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  completions_ = ibv_create_cq(device_->context(), mostNotes + mostWrites, nullptr, channel_, 0);
  if (completions_ == nullptr) refused(port_.name() + " gives no completion queue", errno);
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.send_cq = wanted.recv_cq = completions_;
  wanted.cap = {.max_send_wr = static_cast<uint32_t>(mostWrites),
                .max_recv_wr = static_cast<uint32_t>(mostNotes),
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = kMostCopied};
  pair_ = ibv_create_qp(device_->domain(), &wanted);
  if (pair_ == nullptr) refused(port_.name() + " gives no queue pair", errno);
  registerMemory(edge);
  if (edge.gpuSlots.begin != nullptr) registerSlots(edge.gpuSlots);
}

// What is kept of users' memory, for nobody right now, makes room.
void DeviceQueue::registerMemory(const tuttiTransportEdge& edge) {
  const int access = accessOf(behaviour_.relaxed);
  do memory_ = ibv_reg_mr(device_->domain(), edge.memory, edge.memoryBytes, access);
  while (memory_ == nullptr && errno == ENOMEM && Device::giveUpOne());
  if (memory_ == nullptr)
    refused(fmt::format("{} bytes cannot be registered with {}", edge.memoryBytes, port_.name()), errno);
}

// By its dma-buf, which any kernel since 5.12 knows; else by its address, which a kernel knows that a module of the
// GPU's maker has told (peer memory).
void DeviceQueue::registerSlots(const tuttiTransportGpuSlots& slots) {
  const int access = accessOf(behaviour_.relaxed);
  int byDmabuf = EOPNOTSUPP;
  if (slots.dmabuf >= 0) {
    slots_ = ibv_reg_dmabuf_mr(device_->domain(), slots.dmabufOffset, slots.bytes,
                               reinterpret_cast<uintptr_t>(slots.begin), slots.dmabuf, access);
    byDmabuf = errno;
  }
  if (slots_ == nullptr) slots_ = ibv_reg_mr(device_->domain(), slots.begin, slots.bytes, access);
  if (slots_ == nullptr)
    throw std::runtime_error(
        fmt::format("{} bytes of the GPU's memory cannot be registered with {}: not by dma-buf ({}), nor by their "
                    "address ({}), which takes the module nvidia_peermem",
                    slots.bytes, port_.name(), slots.dmabuf < 0 ? "the GPU has none" : std::strerror(byDmabuf),
                    std::strerror(errno)));
}

void DeviceQueue::release() noexcept {
  if (pair_ != nullptr) ibv_destroy_qp(pair_);
  if (slots_ != nullptr) ibv_dereg_mr(slots_);
  if (memory_ != nullptr) ibv_dereg_mr(memory_);
  if (completions_ != nullptr) ibv_destroy_cq(completions_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
}

bool DeviceQueue::change(ibv_qp_attr& attributes, int mask) noexcept {
  const int error = pair_ == nullptr ? ENODEV : ibv_modify_qp(pair_, &attributes, mask | IBV_QP_STATE);
  if (error != 0) errno = error;
  return error == 0;
}

bool DeviceQueue::connect(const QueueAddress& peer, uint32_t life) noexcept {
  peer_ = peer;
  life_ = life;
  begun_ = 0;
  seen_.clear();
  ibv_qp_attr reset{};
  reset.qp_state = IBV_QPS_RESET;
  ibv_qp_attr begin{};
  begin.qp_state = IBV_QPS_INIT;
  begin.port_num = static_cast<uint8_t>(port_.number);
  begin.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return change(reset, 0) && change(begin, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
         toReady(peer, life);
}

ibv_ah_attr DeviceQueue::wayTo(const QueueAddress& peer) const noexcept {
  ibv_ah_attr way{};
  way.sl = behaviour_.serviceLevel;
  way.port_num = static_cast<uint8_t>(port_.number);
  way.dlid = peer.lid;
  const bool isRouted =
      port_.isEthernet || peer.lid == 0 || !std::equal(own_.gid.begin(), own_.gid.begin() + 8, peer.gid.begin());
  if (!isRouted) return way;
  way.is_global = 1;
  std::memcpy(way.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  way.grh.sgid_index = static_cast<uint8_t>(gidIndex_);
  way.grh.hop_limit = kHops;
  way.grh.traffic_class = behaviour_.trafficClass;
  return way;
}

bool DeviceQueue::toReady(const QueueAddress& peer, uint32_t life) noexcept {
  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = static_cast<ibv_mtu>(std::min(own_.mtu, peer.mtu));
  receive.dest_qp_num = peer.number;
  receive.rq_psn = firstPacket(peer, life);
  receive.max_dest_rd_atomic = 1;
  receive.min_rnr_timer = kReceiverNotReady;
  receive.ah_attr = wayTo(peer);
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.timeout = behaviour_.timeout;
  send.retry_cnt = behaviour_.retries;
  send.rnr_retry = kForEver;
  send.sq_psn = firstPacket(own_, life);
  send.max_rd_atomic = 1;
  return change(receive, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                             IBV_QP_MIN_RNR_TIMER) &&
         change(send, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int DeviceQueue::expectNotes(int count) noexcept {
  ibv_recv_wr wanted{};
  wanted.wr_id = numberOf(life_, kReceive);
  for (int granted = 0; granted < count; ++granted) {
    ibv_recv_wr* refused = nullptr;
    if (const int error = pair_ == nullptr ? ENODEV : ibv_post_recv(pair_, &wanted, &refused); error != 0) {
      errno = error;
      return granted;
    }
  }
  return count;
}

bool DeviceQueue::write(const Write& write) noexcept {
  const uint32_t own = write.inSlots ? slots_->lkey : memory_->lkey;
  ibv_sge part{reinterpret_cast<uintptr_t>(write.from), write.bytes, write.key.value_or(own)};
  ibv_send_wr request{};
  request.wr_id = numberOf(life_, ++begun_ & kCount);
  request.sg_list = &part;
  request.num_sge = write.bytes > 0 ? 1 : 0;
  request.opcode = write.note ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.imm_data = htonl(write.note.value_or(0));
  if (write.signalled) request.send_flags |= IBV_SEND_SIGNALED;
  if (write.copied) request.send_flags |= IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = (write.inSlots ? peer_.slots : peer_.memory) + write.to;
  request.wr.rdma.rkey = write.inSlots ? peer_.slotsKey : peer_.key;
  ibv_send_wr* refused = nullptr;
  const int error = pair_ == nullptr ? ENODEV : ibv_post_send(pair_, &request, &refused);
  if (error != 0) errno = error;
  return error == 0;
}

Completion DeviceQueue::completionOf(const ibv_wc& done) const noexcept {
  Completion completion;
  completion.receive = (done.wr_id & kReceive) != 0;
  // The device remembers 16 bits; older ones than that are gone.
  completion.life = (done.wr_id >> 48) == (life_ & 0xffff) ? life_ : life_ - 1;
  completion.status = done.status;
  if (done.status != IBV_WC_SUCCESS) return completion;
  if (completion.receive) {
    completion.what = Completion::What::kNote;
    completion.note = ntohl(done.imm_data);
  } else {
    completion.what = Completion::What::kWritten;
    completion.write = done.wr_id & kCount;
  }
  return completion;
}

int DeviceQueue::poll(std::span<Completion> completions) noexcept {
  const size_t before = std::min(seen_.size(), completions.size());
  std::copy_n(seen_.begin(), before, completions.begin());
  seen_.erase(seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(before));
  std::array<ibv_wc, 16> done;
  const int most = static_cast<int>(std::min(done.size(), completions.size() - before));
  const int count = ibv_poll_cq(completions_, most, done.data());
  if (count < 0 && before == 0) {
    errno = EIO;
    return -1;
  }
  size_t filled = before;
  for (const ibv_wc& one : std::span(done).first(static_cast<size_t>(std::max(count, 0))))
    if (one.wr_id != kMark) completions[filled++] = completionOf(one);  // it may come too late
  return static_cast<int>(filled);
}

// One that can not be stopped goes: it would read on in memory that its owner has back.
void DeviceQueue::stop() noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (pair_ == nullptr || (change(attributes, 0) && isDrained())) return;
  ibv_destroy_qp(pair_);
  pair_ = nullptr;
}

// A device reports what it has begun in order: once the mark behind the last write comes back, as broken, none of those
// before it is read any more. It takes microseconds; a device that does not report at all is not waited for longer.
bool DeviceQueue::isDrained() noexcept try {
  constexpr std::chrono::milliseconds kPatience(500);
  ibv_send_wr mark{};
  mark.wr_id = kMark;
  mark.opcode = IBV_WR_RDMA_WRITE;
  mark.send_flags = IBV_SEND_SIGNALED;
  mark.wr.rdma.remote_addr = peer_.memory;
  mark.wr.rdma.rkey = peer_.key;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(pair_, &mark, &refused) != 0) return false;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    ibv_wc done;
    const int count = ibv_poll_cq(completions_, 1, &done);
    if (count < 0) return false;
    if (count > 0 && done.wr_id == kMark) return true;
    if (count > 0) seen_.push_back(completionOf(done));
  }
  return false;
} catch (const std::exception&) {  // no memory to keep what else was reported
  return false;
}

bool DeviceQueue::portIsActive() noexcept {
  ibv_port_attr attributes{};
  return ibv_query_port(device_->context(), static_cast<uint8_t>(port_.number), &attributes) == 0 &&
         attributes.state == IBV_PORT_ACTIVE;
}

// Only what completes after it is told of; so what has completed before is looked for once more.
bool DeviceQueue::arm() noexcept {
  ibv_cq* of = nullptr;
  void* context = nullptr;
  unsigned events = 0;
  while (ibv_get_cq_event(channel_, &of, &context) == 0) ++events;
  if (events > 0) ibv_ack_cq_events(completions_, events);
  if (ibv_req_notify_cq(completions_, 0) != 0) return false;
  if (seen_.empty()) {
    std::array<ibv_wc, 1> done;
    try {
      if (ibv_poll_cq(completions_, 1, done.data()) > 0) seen_.push_back(completionOf(done[0]));
    } catch (const std::exception&) {
      return false;
    }
  }
  return seen_.empty();
}

std::string DeviceQueue::textOf(int status) const {
  const char* cause = "";
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      cause = ": the peer's port does not answer; is it gone, or a cable or a switch between?";
      break;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      cause = ": the peer takes nothing more";
      break;
    case IBV_WC_REM_ACCESS_ERR:
      cause = ": the peer does not allow this memory to be written to";
      break;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
      cause = ": the peer's device refused it";
      break;
    case IBV_WC_LOC_PROT_ERR:
      cause = ": this end's memory is not registered any more";
      break;
    case IBV_WC_WR_FLUSH_ERR:
      cause = ": the queue pair had been stopped; the port may be down";
      break;
    default:
      break;
  }
  return fmt::format("{}{}", ibv_wc_status_str(static_cast<ibv_wc_status>(status)), cause);
}

}  // namespace tutti::verbs
