// What a rank brings to the others: what it found out of its machine and its environment.
#pragma once
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "net/network.h"
#include "team/config.h"
#include "team/recorder.h"
#include "wire/join_request.h"
#include "wire/messages.h"

namespace tutti::comm {

// Made while the caller is in the call: while a thread in the background looked through the environment, the program
// might change it.
struct Self {
  Bytes info;
  Network network;
  std::optional<control::Refusal> lack;  // a GPU that is not there, a setting of the network's: join() tells the others
  static Self find(const Config& config);  // throws Error
  // Of a rank that cannot even be described: all that it is to do is to tell the others why.
  static Self lacking(control::Refusal why);
  void check() const;  // throws what it lacks
};

// All but who joins what.
control::JoinRequest requestFor(const Config& config, const Self& self, std::shared_ptr<const Recorder> recorder);

}  // namespace tutti::comm
