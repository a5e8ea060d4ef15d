// The small exchange that a new connection has to pass before anyone relies on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "link/link.h"

namespace tutti::link {

// Each end posts slots of a known pattern (empty, inline, just over inline, one full slot; more slots than the FIFO is
// deep, so that every counter goes around once) and compares what it receives. Non-blocking. Only one full slot is
// written, and of that the two edges where both ends map it, so that the memory stays untouched until it is used.
class SelfTest {
 public:
  // `connection` must be new (no slot posted or received) and outlive the test. `depth`: of both ends' FIFOs, or, where
  // each has its own, what they have agreed upon: an end that has more does not go around.
  SelfTest(Connection& connection, int self, int peer, uint32_t depth);
  // True once everything went through in both directions; the counters then stand where the exchange left them, the
  // same at both ends. Throws Error that says what arrived wrong.
  bool advance();
  std::string state() const;  // how far it got, for texts

 private:
  void post(uint64_t slot);
  void check(uint64_t slot) const;
  uint32_t sizeOfSlot(uint64_t slot) const noexcept;

  Connection& connection_;
  int self_, peer_;
  uint64_t slots_;
};

}  // namespace tutti::link
