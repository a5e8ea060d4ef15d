// A queue pair of a real device.
#pragma once
#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

#include "transports/verbs/device.h"
#include "transports/verbs/ports.h"
#include "transports/verbs/queue.h"

namespace tutti::verbs {

// How a connection behaves; the numbers are those of verbs.
struct Behaviour {
  int gidIndex = -1;         // -1: chosen
  uint8_t trafficClass = 0;  // of RoCE and of routed InfiniBand
  uint8_t serviceLevel = 0;
  uint8_t timeout = 18;  // an unanswered packet is sent again after 4.096 us * 2^this
  uint8_t retries = 6;   // so often
  bool relaxed = true;   // PCI may order writes as it likes, where the device knows how
};

class DeviceQueue final : public Queue {
 public:
  // Registers the edge's memory and slots, which outlive it. Throws std::runtime_error that names the device and the
  // limit that is met.
  DeviceQueue(const Port& port, const Behaviour& behaviour, const tuttiTransportEdge& edge, int mostNotes,
              int mostWrites);
  ~DeviceQueue() override;

  std::string name() const override { return port_.name(); }
  QueueAddress address() const override { return own_; }
  bool connect(const QueueAddress& peer, uint32_t life) noexcept override;
  int expectNotes(int count) noexcept override;
  bool write(const Write& write) noexcept override;
  int poll(std::span<Completion> completions) noexcept override;
  void stop() noexcept override;
  std::shared_ptr<MemoryCache> memory() const override { return Device::memoryOf(device_); }
  bool portIsActive() noexcept override;
  int pollFd() const noexcept override { return channel_ ? channel_->fd : -1; }
  bool arm() noexcept override;
  std::string textOf(int status) const override;

 private:
  void make(const tuttiTransportEdge& edge, int mostNotes, int mostWrites);
  void registerMemory(const tuttiTransportEdge& edge);
  void registerSlots(const tuttiTransportGpuSlots& slots);
  void release() noexcept;
  bool change(ibv_qp_attr& attributes, int mask) noexcept;
  bool isDrained() noexcept;
  bool toReady(const QueueAddress& peer, uint32_t life) noexcept;
  ibv_ah_attr wayTo(const QueueAddress& peer) const noexcept;
  Completion completionOf(const ibv_wc& done) const noexcept;

  Port port_;
  Behaviour behaviour_;
  int gidIndex_ = 0;
  std::shared_ptr<Device> device_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_qp* pair_ = nullptr;
  ibv_mr* memory_ = nullptr;
  ibv_mr* slots_ = nullptr;  // of a GPU; null: they are in the memory
  QueueAddress own_, peer_;
  uint32_t life_ = 0;
  uint64_t begun_ = 0;
  std::vector<Completion> seen_;  // while this was armed
};

}  // namespace tutti::verbs
