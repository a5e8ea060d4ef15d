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
  for (const double rate : {word.ringGBs, word.pairGBs, word.nicGBs, word.networkGBs}) out.value(rate);
  out.value(static_cast<uint32_t>(word.order.size()));
  for (const int rank : word.order) out.value<int32_t>(rank);
  return out.take();
}

HostWord decodeHostWord(std::span<const std::byte> bytes) {
  Reader in(bytes);
  HostWord word;
  word.why = in.text(), word.source = in.text();
  word.asNumbered = in.value<bool>();
  word.along = in.oneOf(topology::PathType::kLocal, topology::PathType::kNone);
  bool sound = true;
  for (double* const rate : {&word.ringGBs, &word.pairGBs, &word.nicGBs, &word.networkGBs})
    sound &= isRate(*rate = in.value<double>());
  for (auto left = in.value<uint32_t>(); left > 0; --left) word.order.push_back(in.value<int32_t>());
  if (!sound || !isPlain(word.why) || !isPlain(word.source) || !in.empty())
    throw Error(ErrorCode::kRemote,
                "a rank tells of its host's links what none tells: do all ranks run the same tutti?");
  return word;
}

}  // namespace tutti::site
