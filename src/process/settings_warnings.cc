#include "process/settings_warnings.h"

#include <mutex>
#include <string>

#include "process/log.h"
#include "settings/foreign_settings.h"
#include "settings/settings.h"
#include "settings/survey.h"

namespace tutti::settings {

void warnOfStrangeSettings() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const std::string& line : strangeNames(Environment())) log::warn("{}", line);
    for (const std::string& problem : fileSettings().problems) log::warn("{}", problem);
    const std::string level = text("TUTTI_DEBUG");
    if (!log::levelByName(level))
      log::warn("TUTTI_DEBUG={}: choose one of {}; going on with warn", level, findSetting("TUTTI_DEBUG")->values);
  });
}

void tellForeignNames() {
  static std::once_flag once;
  std::call_once(once, [] {
    const Environment environment;
    const std::string line = foreignNames(environment);
    if (line.empty()) return;
    if (environment.find("TUTTI_DEBUG"))
      log::info("{}", line);
    else
      log::warn("{}; setting TUTTI_DEBUG, also to its default warn, leaves this line out", line);
  });
}

}  // namespace tutti::settings
