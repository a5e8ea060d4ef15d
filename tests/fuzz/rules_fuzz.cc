// Settings with rules for operations: a text is refused in words, or means something, of which the text that the
// library makes means the same.
#include "base/error.h"
#include "fuzz/input.h"
#include "plan/protocols.h"
#include "schedule/rules.h"

namespace tutti::fuzz {
namespace {

// `written`: as it is read, and written again.
template <class Written>
void check(const std::string& text, Written written) {
  try {
    const std::string once = written(text);
    require(once.empty() || written(once) == once);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  const std::string text = fuzz::Input(data, size).text();
  fuzz::check(text, [](const std::string& rules) { return schedule::textOf(schedule::parseAlgorithms(rules)); });
  fuzz::check(text, [](const std::string& rules) { return schedule::textOf(schedule::parseChannels(rules)); });
  fuzz::check(text, [](const std::string& rules) { return plan::textOf(plan::parseProtocols(rules)); });
  return 0;
}
