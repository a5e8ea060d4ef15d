#include "perf/verify.h"

#include <algorithm>

namespace tutti::perf {
namespace {

std::vector<Layer> invertedCopy(std::vector<Layer> layers) {
  for (Layer& layer : layers) layer.inverted = true;
  return layers;
}

}  // namespace

Verifier::Verifier(const Collective& collective, const Layout& layout, tuttiDataType_t type, const Place& place,
                   const Inputs& inputs, uint64_t seed, bool inPlace)
    : collective_(collective), layout_(layout), place_(place) {
  const size_t size = sizeOf(type);
  const auto rank = static_cast<size_t>(place.rank);
  const size_t resultStart = inPlace ? layout.receiveStep * rank : 0;
  for (const Piece& piece : collective.results(layout.parameter, place)) {
    const Sequence sequence = piece.source == Piece::kReduced ? inputs.reduced(seed) : inputs.sent(piece.source, seed);
    results_.push_back({resultStart + piece.at, piece.count, sequence, piece.from});
  }
  const size_t inputStart = inPlace ? layout.sendStep * rank : 0;
  const Layer input{inputStart, layout.send, inputs.sent(place.rank, seed), 0};
  sent_ = {inPlace ? 0 : layout.send, size, {input}};
  before_ = {inPlace ? std::max(layout.send, layout.receive) : layout.receive, size, invertedCopy(results_)};
  after_ = {before_.elements, size, {}};
  if (inPlace) {
    before_.layers.push_back(input);
    after_.layers.push_back(input);
  }
  after_.layers.insert(after_.layers.end(), results_.begin(), results_.end());
}

void Verifier::prepare(const Buffer& send, const Buffer& receive) const {
  paint(sent_, send.image());
  paint(before_, receive.image());
  send.plantCanaries(sent_.bytes());
  receive.plantCanaries(before_.bytes());
  send.publish(sent_.bytes());
  receive.publish(before_.bytes());
}

void Verifier::collect(const Buffer& send, const Buffer& receive) const {
  send.fetch(sent_.bytes());
  receive.fetch(after_.bytes());
}

size_t Verifier::countWrong(const Buffer& send, const Buffer& receive) const {
  return perf::countWrong(sent_, send.image()) + perf::countWrong(after_, receive.image()) +
         send.brokenCanaries(sent_.bytes()) + receive.brokenCanaries(after_.bytes());
}

bool Verifier::isLastWithResults() const {
  for (int rank = place_.ranks - 1; rank > place_.rank; --rank) {
    if (!collective_.results(layout_.parameter, {rank, place_.ranks, place_.root}).empty()) return false;
  }
  return !results_.empty();
}

void Verifier::plantError(const Buffer& receive) const {
  if (layout_.parameter == 0 || !isLastWithResults()) return;
  const Layer& result = results_.back();
  receive.image()[(result.at + result.count / 2) * after_.elementSize] ^= std::byte{0x08};
}

}  // namespace tutti::perf
