// Wires from GPU to GPU below their row: each goes down to a track of its own layer, along it, and up again.
#pragma once
#include <string>
#include <vector>

#include "drawing/placing.h"

namespace tutti::drawing {

struct Wire {
  int from = 0, to = 0;       // GPUs that are in the picture
  int layer = 0;              // the layers lie below each other
  double fromX = 0, toX = 0;  // where it leaves the boxes: for route() to say, as is
  int track = 0;              // which of its layer's

  double left() const noexcept { return fromX < toX ? fromX : toX; }
  double right() const noexcept { return fromX < toX ? toX : fromX; }
};

// Gives each wire its places at the boxes and its track, so that few cross. Returns how many tracks each layer has.
std::vector<int> route(std::vector<Wire>& wires, const Placing& placing, int layers);

// How far down a wire's track is, in a layer that begins at `top`.
inline constexpr double kTrackPitch = 16;
inline double levelOf(const Wire& wire, double top) { return top + kTrackPitch * (wire.track + 0.5); }

// For each span a row, the first in which it touches none before it; wider ones come later.
struct Span {
  double left = 0, right = 0;
};
std::vector<int> packed(const std::vector<Span>& spans);

// The way of a wire from the foot of its boxes along `y`, with round corners.
std::string wirePath(const Wire& wire, const Placing& placing, double y);

}  // namespace tutti::drawing
