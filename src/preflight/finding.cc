#include "preflight/finding.h"

#include <fmt/format.h>

namespace tutti::preflight {

const char* nameOf(Severity severity) noexcept {
  switch (severity) {
    case Severity::kHint:
      return "hint";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

std::string textOf(const Finding& finding) { return fmt::format("{}: {}. {}", finding.who, finding.what, finding.fix); }

}  // namespace tutti::preflight
