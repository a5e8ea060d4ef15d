// One verified call of one rank: what goes in, what must come out, and what must not be touched.
#pragma once
#include <cstdint>

#include "perf/buffer.h"
#include "perf/check.h"
#include "perf/collective.h"
#include "perf/inputs.h"

namespace tutti::perf {

class Verifier {
 public:
  // `inputs` must outlive this.
  Verifier(const Collective& collective, const Layout& layout, tuttiDataType_t type, const Place& place,
           const Inputs& inputs, uint64_t seed, bool inPlace);

  // Fills the send buffer, poisons the receive buffer with the contrary of what must come, and plants the guards.
  void prepare(const Buffer& send, const Buffer& receive) const;
  // After the call, when it is done: brings both buffers' contents to where the others look at them.
  void collect(const Buffer& send, const Buffer& receive) const;
  // Elements of both buffers that are not what they must be, and guard bytes that have changed. The send buffer must be
  // as it was; so must be every part of the receive buffer that gets no result.
  size_t countWrong(const Buffer& send, const Buffer& receive) const;
  // Flips a bit in the middle of the results of the last rank that gets any; on the other ranks does nothing.
  void plantError(const Buffer& receive) const;

 private:
  bool isLastWithResults() const;

  const Collective& collective_;
  Layout layout_;
  Place place_;
  Image sent_, before_, after_;
  std::vector<Layer> results_;
};

}  // namespace tutti::perf
