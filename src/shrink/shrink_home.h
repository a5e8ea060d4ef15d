// What shrinking knows of the plane that shrinks, and of those that are tried in its place. One class is both:
// ControlNode (control/control_node.h), which holds the Shrink.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "wire/dial.h"
#include "wire/join_request.h"
#include "wire/messages.h"

namespace tutti::control {

// This rank's part of a plane that it has begun to join.
class NewPlane {
 public:
  virtual ~NewPlane() = default;
  // Calls `then` once it is known, at once or on the thread that brings the news; without a refusal: joined.
  virtual void whenJoined(std::function<void(const std::optional<Refusal>&)> then) = 0;
  // Fails it for all who have joined it as well, and leaves it.
  virtual void drop(const std::string& why) = 0;
};

// This rank's part of the plane that shrinks.
class ShrinkHome {
 public:
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual const RankAddress& who(int rank) const = 0;
  virtual const noise::KeyPair& key() const noexcept = 0;  // the rank's own
  virtual UniqueId childId(UniqueId told) const = 0;
  virtual Dial::Target targetFor(int rank) const = 0;  // how to call another rank's listener
  // Begins to join, in the background. Throws when it cannot even begin.
  virtual std::shared_ptr<NewPlane> beginNew(const JoinRequest& request) = 0;
  // Expires with this part of the plane, and what it holds.
  virtual std::weak_ptr<void> alive() = 0;

 protected:
  ~ShrinkHome() = default;
};

}  // namespace tutti::control
