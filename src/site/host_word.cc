#include "site/host_word.h"

#include <cmath>

#include "base/error.h"
#include "base/plain_text.h"

namespace tutti::site {
namespace {

constexpr size_t kMostText = 600;

// It stands in logs: whoever made the word has seen to it that it may.
bool isPlain(const std::string& text) { return plainText(text, kMostText) == text; }

bool isRate(double gigabytes) { return std::isfinite(gigabytes) && gigabytes >= 0; }

}  // namespace

Bytes encode(const HostWord& word) {
  Writer out;
  out.text(plainText(word.why, kMostText)).text(plainText(word.source, kMostText));
  out.value<uint8_t>(word.asNumbered).value(word.along);
  out.value(word.ringGBs).value(word.pairGBs).value(word.networkGBs).value(static_cast<uint32_t>(word.order.size()));
  for (const int rank : word.order) out.value<int32_t>(rank);
  return out.take();
}

HostWord decodeHostWord(std::span<const std::byte> bytes) {
  Reader in(bytes);
  HostWord word;
  word.why = in.text(), word.source = in.text();
  word.asNumbered = in.value<bool>();
  word.along = in.oneOf(topology::PathType::kLocal, topology::PathType::kNone);
  word.ringGBs = in.value<double>(), word.pairGBs = in.value<double>(), word.networkGBs = in.value<double>();
  for (auto left = in.value<uint32_t>(); left > 0; --left) word.order.push_back(in.value<int32_t>());
  const bool sound = isPlain(word.why) && isPlain(word.source) && isRate(word.ringGBs) && isRate(word.pairGBs) &&
                     isRate(word.networkGBs);
  if (!sound || !in.empty())
    throw Error(ErrorCode::kRemote,
                "a rank tells of its host's links what none tells: do all ranks run the same tutti?");
  return word;
}

}  // namespace tutti::site
