// The log of callers that were refused, in bounds: however many come, the log stays readable and the disk free.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "net/reactor.h"

namespace tutti {

// The first few of each address get a line each; all others are counted, in one line a second. On one reactor's thread.
class Refusals {
 public:
  explicit Refusals(Reactor& reactor) : reactor_(reactor) {}
  // `peer` is as describePeer() gives it.
  void note(std::string_view peer, std::string_view why) noexcept;
  // Says what has only been counted so far.
  void flush();

 private:
  void tell(const std::string& peer, const std::string& why);

  static constexpr int kLinesPerAddress = 3;
  static constexpr size_t kMaxAddresses = 64;

  Reactor& reactor_;
  std::map<std::string, int> lines_;  // written, by address
  uint64_t counted_ = 0;
  std::string last_;
  Reactor::Token timer_ = 0;
};

}  // namespace tutti
