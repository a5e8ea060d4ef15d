// One thing that is wrong with a host, or between two; and what was measured between two.
#pragma once
#include <cstdint>
#include <string>

namespace tutti::preflight {

// kHint: worth knowing, and may be meant so. kWarning: slower or nearer to failing than it need be. kError: does not
// work.
enum class Severity : uint8_t { kHint, kWarning, kError };
const char* nameOf(Severity severity) noexcept;

struct Finding {
  Severity severity = Severity::kHint;
  std::string who;   // "n2", or "n2, n5-n8 and 3 more"
  std::string what;  // "eth0 carries packets of 1280 bytes, the other 3 hosts' of 1500"
  std::string fix;   // what to do
  friend bool operator==(const Finding&, const Finding&) = default;
};

// "n2: eth0 carries ...; do this"
std::string textOf(const Finding& finding);

// What a transport does between two ranks.
struct PairResult {
  int low = 0, high = 0;             // ranks
  size_t lowHost = 0, highHost = 0;  // their hosts, by their places among the reports
  std::string transport;
  double latencyUs = 0;        // of a few bytes, one way
  double there = 0, back = 0;  // GB/s from the lower rank to the higher one, and the other way
  std::string why;             // it does not work; empty: it does
  friend bool operator==(const PairResult&, const PairResult&) = default;

  bool works() const { return why.empty(); }
};

}  // namespace tutti::preflight
