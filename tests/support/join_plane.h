// A plane whose ranks are all there.
#pragma once
#include <memory>

#include "control/plane.h"

namespace tutti {

inline std::shared_ptr<control::Plane> joinPlane(const control::JoinRequest& request) {
  auto plane = control::Plane::begin(request);
  plane->awaitJoined(Deadline::never());
  return plane;
}

}  // namespace tutti
