// What a rank brings when it joins.
#pragma once
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "job/unique_id.h"
#include "net/network.h"

namespace tutti::control {

// Answers another rank's question (Plane::ask) about this one. Called on the plane's thread, which outlives the Plane
// for a while: it must own what it looks at, return soon and not throw.
using Respond = std::function<Bytes(std::span<const std::byte> question)>;

// What every rank must have set alike: a name and a value each, both as people know them.
struct Agreed {
  std::string name, value;
  friend bool operator==(const Agreed&, const Agreed&) = default;
};
using Agreement = std::vector<Agreed>;

// Whether calls are under way that may still end, for which a process that ends waits a moment. As Respond.
using Busy = std::function<bool()>;

struct JoinRequest {
  UniqueId id;
  int rank = 0, size = 1;
  Bytes info;  // opaque to the control plane; everyone gets everyone's
  Network network;
  Deadline deadline = Deadline::never();
  // A neighbour in the tree that is silent for so long counts as gone: stopped, its host dead or its cable cut. Zero:
  // silence is no failure. The same on every rank.
  std::chrono::milliseconds heartbeat{20'000};
  // Seal what crosses a network: control lines and TCP streams. The same on every rank (a rank that differs is refused,
  // with a text that says so).
  bool encrypt = false;
  // A rank that differs from the first one to come in a value of a name that both have is refused; the text tells both.
  Agreement agreement;
  Respond respond;  // may be empty: questions get an empty answer
  Busy busy;        // may be empty: there are none
  // Another rank leads it there, and hears over a line that stands how it goes.
  bool led = false;
};

}  // namespace tutti::control
