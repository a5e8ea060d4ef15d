#include "interleavings/network.h"

#include <algorithm>
#include <cstring>

namespace tutti::interleavings {

size_t Weather::allowance() const {
  if (fair) return SIZE_MAX;
  return chance->of<size_t>({0, 0, 1, 40, 200, SIZE_MAX});
}

bool StreamDriver::posted() const noexcept {
  return send_.headers[sent_ & (send_.depth - 1)].sequence.load(std::memory_order_relaxed) == sent_ + 1;
}

link::Progress StreamDriver::progress() noexcept {
  const bool wrote = write(), took = read();
  return wrote || took ? link::Progress::kAdvanced : link::Progress::kIdle;
}

link::Progress StreamDriver::send() noexcept { return write() ? link::Progress::kAdvanced : link::Progress::kIdle; }

// As transports/tcp does: a slot is released once its last byte is in the pipe.
bool StreamDriver::write() {
  const uint64_t before = out_.written;
  for (size_t allowed = weather_.allowance(); posted();) {
    const link::SlotHeader& header = send_.headers[sent_ & (send_.depth - 1)];
    if (out_.frames.empty() || out_.frames.back().end <= out_.written) {
      const std::byte* payload = header.bytes <= link::kInlineBytes ? header.inlined : link::placeSent(send_, sent_);
      out_.frames.push_back(
          {out_.written + kFrameBytes + header.bytes, header.fingerprint, {payload, payload + header.bytes}});
    }
    const uint64_t rest = out_.frames.back().end - out_.written;
    const uint64_t step = std::min({rest, uint64_t{allowed}, out_.capacity - (out_.written - out_.read)});
    out_.written += step;
    allowed -= step;
    if (step < rest) break;
    send_.released->value.store(++sent_, std::memory_order_relaxed);
  }
  return out_.written != before;
}

// Takes bytes only while there is a slot for them.
bool StreamDriver::read() {
  const uint64_t before = in_.read;
  for (size_t allowed = weather_.allowance(); !in_.frames.empty();) {
    if (arrived_ - recv_.released->value.load(std::memory_order_relaxed) == recv_.depth) break;
    const uint64_t rest = in_.frames.front().end - in_.read;
    const uint64_t step = std::min({rest, uint64_t{allowed}, in_.written - in_.read});
    in_.read += step;
    allowed -= step;
    if (step < rest) break;
    deliver();
  }
  return in_.read != before;
}

void StreamDriver::deliver() {
  const Pipe::Frame& frame = in_.frames.front();
  const uint64_t place = arrived_ & (recv_.depth - 1);
  link::SlotHeader& header = recv_.headers[place];
  header.fingerprint = frame.fingerprint;
  header.bytes = static_cast<uint32_t>(frame.payload.size());
  std::byte* const payload =
      header.bytes <= link::kInlineBytes ? header.inlined : recv_.slots + place * size_t{recv_.slotBytes};
  std::copy(frame.payload.begin(), frame.payload.end(), payload);
  header.sequence.store(++arrived_, std::memory_order_relaxed);
  in_.frames.pop_front();
}

link::Fifo Edge::newFifo(uint32_t slotBytes, uint32_t depth) {
  memory_.emplace_back(link::Fifo::bytesFor(slotBytes, depth) / sizeof(Line) + 1);
  return link::Fifo::over(reinterpret_cast<std::byte*>(memory_.back().data()), slotBytes, depth);
}

Edge::Edge(Kind kind, int low, int high, uint32_t slotBytes, uint32_t depth, const Weather& weather, size_t capacity)
    : low_(low) {
  if (kind == Kind::kSelf) {
    ends_[0].send.peer = ends_[0].recv.peer = low;
    ends_[0].send.fifo = ends_[0].recv.fifo = newFifo(slotBytes, depth);
    return;
  }
  for (int side = 0; side < 2; ++side) {
    End &from = ends_[side], &to = ends_[1 - side];
    from.send.peer = from.recv.peer = side == 0 ? high : low;
    from.send.fifo = newFifo(slotBytes, depth);
    to.recv.fifo = kind == Kind::kMapped ? from.send.fifo : newFifo(slotBytes, depth);
    pipes_[side].capacity = capacity;
  }
  if (kind == Kind::kMapped) return;
  for (int side = 0; side < 2; ++side) {
    End& end = ends_[side];
    end.driver = std::make_unique<StreamDriver>(weather, pipes_[side], pipes_[1 - side]);
    end.driver->serve(end.send.fifo, end.recv.fifo);
    end.send.driver = end.recv.driver = end.driver.get();
  }
}

}  // namespace tutti::interleavings
