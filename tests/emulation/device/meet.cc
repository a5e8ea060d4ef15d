// How the threads of a block meet: all of them at a barrier, named lanes of a warp in a vote or a shuffle.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulation/device/block.h"
#include "emulation/device/sanitizers.h"

namespace tutti::emulation {
namespace {

constexpr uint64_t kNobodysOffer = 0xCBCBCBCBCBCBCBCB;

bool samePlace(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

}  // namespace

// For the sanitizer, even and odd barriers have tags of their own: who hurries on to the next one must not make what it
// did on the way look ordered to those who have yet to leave this one.
void Block::meetBlock(const char* operation, bool vote, const Place& place) noexcept {
  Thread& self = *current_;
  checkBarrier(operation, place);
  char* tag = &tags_[self.barriers++ % 2];
  sanitizers::release(tag);
  self.wait = Wait::kBarrier;
  self.operation = operation;
  self.place = place;
  self.vote = vote;
  if (++atBarrier_ == count_) openBarrier();
  suspend();
  sanitizers::acquire(tag);
}

void Block::checkBarrier(const char* operation, const Place& place) noexcept {
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& other = threads_[i];
    if (other.ended)
      fail(
          fmt::format("divergent {} ({}:{}): thread ({},{},{}) has returned, and every thread of the block has to "
                      "reach it",
                      operation, place.file_name(), place.line(), other.index.x, other.index.y, other.index.z));
    if (other.wait == Wait::kBarrier && !samePlace(other.place, place))
      fail(fmt::format("divergent {} ({}:{}): thread ({},{},{}) waits at {}:{}; all have to meet at the same one",
                       operation, place.file_name(), place.line(), other.index.x, other.index.y, other.index.z,
                       other.place.file_name(), other.place.line()));
    if (other.wait == Wait::kBarrier) return;  // it was checked against the others when it came
  }
}

void Block::openBarrier() noexcept {
  const auto voters =
      std::count_if(threads_.get(), threads_.get() + count_, [](const Thread& thread) { return thread.vote; });
  atBarrier_ = 0;
  for (unsigned i = 0; i < count_; ++i) {
    threads_[i].votes = static_cast<unsigned>(voters);
    wake(threads_[i]);
  }
}

Thread* Block::lane(unsigned lane) noexcept {
  const unsigned number = current_->number / kLanes * kLanes + lane;
  return number < count_ ? &threads_[number] : nullptr;
}

void Block::meetWarp(Exchange& exchange, const Place& place) noexcept {
  Thread& self = *current_;
  self.operation = exchange.operation;
  self.place = place;
  self.exchange = &exchange;
  checkMask(exchange);
  if (exchange.ordered) sanitizers::release(&self.tag);
  self.wait = Wait::kWarp;
  if (warpComplete(exchange.mask)) deliver(exchange.mask);
  suspend();
  for (unsigned l = 0; exchange.ordered && l < kLanes; ++l)
    if (exchange.mask >> l & 1) sanitizers::acquire(&lane(l)->tag);
  self.converged = exchange.ordered;
}

// Another lane may still be in an earlier meeting, of which this one is no part. But two that name each other mean the
// same meeting, so they have to name the same lanes, and to be in the same operation.
void Block::checkMask(const Exchange& exchange) noexcept {
  const unsigned self = current_->number % kLanes;
  if (!(exchange.mask >> self & 1))
    fail(fmt::format("{}: mask {:#010x} does not name lane {}, which calls it", exchange.operation, exchange.mask,
                     self));
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(exchange.mask >> l & 1)) continue;
    const Thread* other = lane(l);
    if (!other || other->ended)
      fail(fmt::format("{}: mask {:#010x} names lane {}, which {}", exchange.operation, exchange.mask, l,
                       other ? "has returned" : "the block does not have"));
    if (other->wait != Wait::kWarp || !(other->exchange->mask >> self & 1)) continue;
    if (other->exchange->mask != exchange.mask)
      fail(fmt::format("{}: mask {:#010x}, but lane {} waits for this one with mask {:#010x}", exchange.operation,
                       exchange.mask, l, other->exchange->mask));
    if (std::strcmp(other->operation, exchange.operation) != 0)
      fail(fmt::format("{} with mask {:#010x}, but lane {} waits for this one in {}", exchange.operation, exchange.mask,
                       l, other->operation));
  }
}

bool Block::warpComplete(uint32_t mask) noexcept {
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(mask >> l & 1)) continue;
    const Thread* other = lane(l);
    if (other->wait != Wait::kWarp || other->exchange->mask != mask) return false;
  }
  return true;
}

// Every lane gets its own copy: its peers may be in their next meeting before it runs again.
void Block::deliver(uint32_t mask) noexcept {
  uint32_t ballot = 0;
  for (unsigned l = 0; l < kLanes; ++l)
    if (mask >> l & 1 && lane(l)->exchange->offer != 0) ballot |= 1u << l;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(mask >> l & 1)) continue;
    Exchange& mine = *lane(l)->exchange;
    mine.ballot = ballot;
    mine.received = mask >> mine.source & 1 ? lane(mine.source)->exchange->offer : kNobodysOffer;
    wake(*lane(l));
  }
}

}  // namespace tutti::emulation
