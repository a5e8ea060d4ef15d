#include "engine/short_steps.h"

#include "kernels/host/write_around.h"
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
  ShortPlace place;
  place.kind = operand.kind();
  place.offset = operand.kind() == Operand::Kind::kInput ? input : output;
  if (operand.kind() == Operand::Kind::kScratch)
    place.scratch = means.scratch + size_t(operand.index()) * means.slotBytes;
  return place;
}

void add(const ShortMeans& means, const kernels::Layout& layout, const Step& step, const kernels::Piece& run,
         const kernels::Arithmetic& arithmetic, ShortSteps& all) noexcept {
  const size_t ins = all.ins.size(), outs = all.outs.size(), from = all.from.size(), to = all.to.size();
  const size_t elementBytes = sizeOf(arithmetic.type);
  const size_t input = run.input * elementBytes, output = run.output * elementBytes;
  const size_t skipped = kernels::skippedOf(layout, step, 0, false) * elementBytes;
  for (const Operand operand : means.schedule.from(step)) {
    all.from.push_back(placeOf(means, operand, input, output));
    if (operand.kind() == Operand::Kind::kScratch) all.from.back().scratch += skipped;
    if (operand.isLink()) all.ins.push_back(all.from.back().in = means.ins[operand.index()]);
  }
  for (const Operand operand : means.schedule.to(step)) {
    all.to.push_back(placeOf(means, operand, input, output));
    if (operand.isLink()) all.outs.push_back(all.to.back().out = means.outs[operand.index()]);
  }
  ShortStep now;
  now.number = static_cast<uint32_t>(&step - means.schedule.steps.data());
  now.count = static_cast<uint32_t>(run.count);
  now.bytes = static_cast<uint32_t>(run.count * elementBytes);
  now.finalises = (step.flags & schedule::kFinalise) != 0;
  const bool divides = now.finalises && arithmetic.divisor > 1;
  now.copies = step.fromCount == 1 && !divides;
  const bool fillsOne = now.copies && all.outs.size() == outs + 1;
  const bool mayGoAround = kernels::kGoesAround && now.bytes >= Stores::kLeastBytes;
  now.stores = fillsOne && mayGoAround ? &means.stores[now.number] : nullptr;
  now.sums = divides ? nullptr : kernels::tinySumOf(arithmetic, run.count);
  now.sumsTwo =
      !divides && step.fromCount == 2 && step.toCount == 1 ? kernels::tinyPairSumOf(arithmetic, run.count) : nullptr;
  now.ins = std::span(all.ins).subspan(ins), now.outs = std::span(all.outs).subspan(outs);
  now.from = std::span(all.from).subspan(from), now.to = std::span(all.to).subspan(to);
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
void workOut(const ShortMeans& means, const kernels::Layout& layout, const kernels::Arithmetic& arithmetic,
             ShortSteps& all) noexcept {
  all.clear();
  if (!isShort(layout)) return;
  const size_t most = means.schedule.size == 2 ? kMostShortOfTwo : kMostShortBytes;
  for (uint32_t lag = 0; lag <= means.schedule.maxLag; ++lag)
    for (const Step& step : means.schedule.steps) {
      if (step.lag != lag) continue;
      kernels::Piece run;
      if (!isOneRun(layout, step, run) || run.count * sizeOf(arithmetic.type) > most) return all.clear();
      if (run.count != 0) add(means, layout, step, run, arithmetic, all);
    }
}

}  // namespace tutti::engine
