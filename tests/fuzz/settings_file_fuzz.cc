// A file of settings: names that are settings' or may be meant so, no secret among them, and a problem for each other
// line.
#include "fuzz/input.h"
#include "settings/settings_file.h"
#include "settings/settings_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  settings::FileSettings all;
  const std::string text = fuzz::Input(data, size).text();
  settings::addSettings(text, "file", all);
  for (const auto& [name, value] : all.values) {
    const settings::Setting* const row = settings::findSetting(name);
    fuzz::require(name.starts_with(settings::kPrefix) && value.find('\n') == std::string::npos);
    fuzz::require(row == nullptr || row->type != settings::Type::kSecret);
  }
  for (const std::string& problem : all.problems) fuzz::require(problem.starts_with("file, line "));
  const auto once = all.values;
  settings::addSettings(text, "again", all);
  fuzz::require(all.values == once);
  return 0;
}
