#include "doctor/net/pair_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/plain_text.h"

namespace tutti::doctor::net {
namespace {

using preflight::PairResult;

constexpr size_t kMostName = 64, kMostReason = 2000;

// They are sorted, and of what is no number no order is known.
double measured(Reader& in) {
  const double number = in.value<double>();
  if (std::isfinite(number) && number >= 0) return number;
  throw Error(ErrorCode::kRemote, "a rank tells of a pair what nobody measures: do all ranks run the same tutti?");
}

}  // namespace

Bytes encode(const std::vector<PairResult>& pairs) {
  Writer out;
  for (const PairResult& one : pairs) {
    out.value(int32_t{one.low}).value(int32_t{one.high}).text(plainText(one.transport, kMostName));
    out.value(one.latencyUs).value(one.there).value(one.back).text(plainText(one.why, kMostReason));
  }
  return out.take();
}

std::vector<PairResult> decodePairs(std::span<const std::byte> bytes) {
  Reader in(bytes);
  std::vector<PairResult> pairs;
  while (!in.empty()) {
    PairResult& one = pairs.emplace_back();
    one.low = in.value<int32_t>();
    one.high = in.value<int32_t>();
    one.transport = plainText(in.text(), kMostName);
    for (double* number : {&one.latencyUs, &one.there, &one.back}) *number = measured(in);
    one.why = plainText(in.text(), kMostReason);
  }
  return pairs;
}

void merge(const PairResult& told, std::vector<PairResult>& pairs) {
  const auto same = std::ranges::find_if(pairs, [&](const PairResult& one) {
    return one.low == told.low && one.high == told.high && one.transport == told.transport;
  });
  if (same == pairs.end()) {
    pairs.push_back(told);
    return;
  }
  if (told.latencyUs > 0) {
    same->latencyUs = told.latencyUs;
    same->there = told.there;
    same->back = told.back;
  }
  if (same->why.empty()) same->why = told.why;
}

std::string shortReason(const std::string& text, const std::string& transport) {
  constexpr std::string_view kForbidden = ": left out by TUTTI_TRANSPORT", kAdvice = "): allow one";
  const std::string mine = fmt::format(" {}: ", transport), first = fmt::format("({}: ", transport);
  size_t at = text.rfind(mine);
  if (at == std::string::npos) at = text.find(first);
  if (at == std::string::npos) return text;
  std::string reason = text.substr(at + mine.size());
  reason.erase(std::min(reason.find(kAdvice), reason.size()));
  for (size_t other; (other = reason.find(kForbidden)) != std::string::npos;) {
    const size_t begin = reason.rfind("; ", other);
    if (begin == std::string::npos) break;
    reason.erase(begin);
  }
  return reason;
}

}  // namespace tutti::doctor::net
