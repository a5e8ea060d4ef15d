// A rectangle of a picture, in its units; y grows downwards.
#pragma once

namespace tutti::drawing {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;

  double right() const noexcept { return x + width; }
  double bottom() const noexcept { return y + height; }
  double middle() const noexcept { return x + width / 2; }
  double centre() const noexcept { return y + height / 2; }
};

}  // namespace tutti::drawing
