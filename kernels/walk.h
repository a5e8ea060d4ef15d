// The walk over the steps of a schedule, the same for a host lane, an operation that waits in a stream and a block of a
// GPU: in which round of its own a step is, what it reads, and which pieces of memory it works on.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"
#include "schedule/schedule.h"

namespace tutti::kernels {

// Iterations until every step has been through all rounds.
constexpr size_t iterationsOf(size_t rounds, uint32_t maxLag) noexcept { return rounds == 0 ? 0 : rounds + maxLag; }

// The round of a step in an iteration. It has nothing to do unless that is less than `rounds`: before its first round
// this wraps to a huge number.
constexpr size_t roundOf(const schedule::Step& step, size_t iteration) noexcept { return iteration - step.lag; }

// Which of the step's sources is the input; -1: none. `operands` are the schedule's.
constexpr int inputOf(const schedule::Operand* operands, const schedule::Step& step) noexcept {
  for (int i = 0; i < step.fromCount; ++i)
    if (operands[step.fromBegin + static_cast<uint32_t>(i)].kind() == schedule::Operand::Kind::kInput) return i;
  return -1;
}

// Whether the step's lengths are in the input's table: where it reads the input. Else they are in the output's.
constexpr bool goesByInput(const Layout& layout, const schedule::Operand* operands,
                           const schedule::Step& step) noexcept {
  return layout.inputCounts != nullptr && inputOf(operands, step) >= 0;
}

// Calls visit(piece) for what the step covers of each of its segments in that round, but for what is empty.
template <class Visit>
void forEachPiece(const Layout& layout, const schedule::Step& step, size_t round, bool byInput, Visit visit) {
  uint32_t segment = step.segment;
  for (uint32_t i = 0; i < step.span; ++i) {
    const Piece piece = layout.piece(segment, round, byInput);
    if (++segment == layout.segments) segment = 0;
    if (piece.count != 0) visit(piece);
  }
}

// The elements of all of them.
inline size_t countOf(const Layout& layout, const schedule::Step& step, size_t round, bool byInput) noexcept {
  size_t count = 0;
  forEachPiece(layout, step, round, byInput, [&](const Piece& piece) { count += piece.count; });
  return count;
}

// What a scratch buffer holds before the segments of a step that reads it from a later one on, as a step over that.
constexpr schedule::Step partBefore(const Layout& layout, const schedule::Step& step) noexcept {
  schedule::Step skipped = step;
  skipped.segment = (step.segment + layout.segments - step.skip) % layout.segments;
  skipped.span = step.skip;
  return skipped;
}

// The elements of it.
inline size_t skippedOf(const Layout& layout, const schedule::Step& step, size_t round, bool byInput) noexcept {
  return step.skip == 0 ? 0 : countOf(layout, partBefore(layout, step), round, byInput);
}

// Calls visit(run, before) for the pieces of a step, which lie side by side in the slot: `before` elements of it come
// first. Where they also lie side by side in the caller's buffers (one round, equal strides) they are one run.
template <class Visit>
void forEachRun(const Layout& layout, const schedule::Step& step, size_t round, bool byInput, Visit visit) {
  Piece run;
  size_t before = 0;
  const auto end = [&] {
    if (run.count != 0) visit(run, before);
    before += run.count;
  };
  forEachPiece(layout, step, round, byInput, [&](const Piece& piece) {
    if (run.count != 0 && piece.input == run.input + run.count && piece.output == run.output + run.count) {
      run.count += piece.count;
      return;
    }
    end();
    run = piece;
  });
  end();
}

}  // namespace tutti::kernels
