#include "engine/short_steps.h"

#include "kernels/walk.h"

namespace tutti::engine {
namespace {

using schedule::Operand;
using schedule::Schedule;
using schedule::Step;

// The piece of memory that the step works on in the only round. False: there are several.
bool isOneRun(const kernels::Layout& layout, const Step& step, kernels::Piece& run) noexcept {
  int runs = 0;
  kernels::forEachRun(layout, step, 0, false, [&](const kernels::Piece& piece, size_t) {
    run = piece;
    ++runs;
  });
  return runs <= 1;
}

bool isShort(const kernels::Layout& layout) noexcept {
  return !layout.inputCounts && !layout.outputCounts && !layout.inputOffsets && !layout.outputOffsets &&
         !layout.speaks && layout.rounds() == 1;
}

ShortPlace placeOf(const ShortMeans& means, Operand operand, size_t input, size_t output) noexcept {
  ShortPlace place{operand.kind(), operand.kind() == Operand::Kind::kInput ? input : output, nullptr, 0};
  if (operand.kind() == Operand::Kind::kScratch)
    place.scratch = means.scratch + size_t(operand.index()) * means.slotBytes;
  return place;
}

void add(const ShortMeans& means, const Step& step, const kernels::Piece& run, size_t elementBytes, bool divides,
         ShortSteps& all) noexcept {
  ShortStep now;
  now.count = static_cast<uint32_t>(run.count);
  now.bytes = static_cast<uint32_t>(run.count * elementBytes);
  now.finalises = (step.flags & schedule::kFinalise) != 0;
  now.copies = step.fromCount == 1 && !(divides && now.finalises);
  now.ins = static_cast<uint32_t>(all.ins.size()), now.outs = static_cast<uint32_t>(all.outs.size());
  now.from = static_cast<uint32_t>(all.from.size()), now.to = static_cast<uint32_t>(all.to.size());
  now.fromCount = step.fromCount, now.toCount = step.toCount;
  const size_t input = run.input * elementBytes, output = run.output * elementBytes;
  for (const Operand operand : means.schedule.from(step)) {
    all.from.push_back(placeOf(means, operand, input, output));
    if (!operand.isLink()) continue;
    all.from.back().link = now.inCount++;
    all.ins.push_back(means.ins[operand.index()]);
  }
  for (const Operand operand : means.schedule.to(step)) {
    all.to.push_back(placeOf(means, operand, input, output));
    if (!operand.isLink()) continue;
    all.to.back().link = now.outCount++;
    all.outs.push_back(means.outs[operand.index()]);
  }
  all.steps.push_back(now);
}

}  // namespace

void ShortSteps::reserve(const Schedule& schedule) {
  size_t sources = 0, destinations = 0;
  for (const Step& step : schedule.steps) sources += step.fromCount, destinations += step.toCount;
  steps.reserve(schedule.steps.size());
  from.reserve(sources), ins.reserve(sources);
  to.reserve(destinations), outs.reserve(destinations);
}

// In the only round a step has its turn in the iteration of its lag.
void workOut(const ShortMeans& means, const kernels::Layout& layout, size_t elementBytes, bool divides,
             ShortSteps& all) noexcept {
  all.clear();
  if (!isShort(layout)) return;
  for (uint32_t lag = 0; lag <= means.schedule.maxLag; ++lag)
    for (const Step& step : means.schedule.steps) {
      if (step.lag != lag) continue;
      kernels::Piece run;
      if (!isOneRun(layout, step, run) || run.count * elementBytes > kMostShortBytes) return all.clear();
      if (run.count != 0) add(means, step, run, elementBytes, divides, all);
    }
}

}  // namespace tutti::engine
