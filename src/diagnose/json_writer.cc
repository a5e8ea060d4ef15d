#include "diagnose/json_writer.h"

#include <nlohmann/json.hpp>

namespace tutti {

// A string alone is no tree: its destructor gives back, and takes nothing.
std::string jsonText(std::string_view text, bool ascii) {
  return nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

JsonWriter& JsonWriter::key(std::string_view name) {
  element(jsonText(name) + ": ");
  named_ = true;
  return *this;
}

// As a string, a number is no tree.
void JsonWriter::value(double number) { element(nlohmann::json(number).dump()); }

void JsonWriter::element(std::string_view text) {
  if (!std::exchange(named_, false) && depth_ > 0) {
    if (!std::exchange(first_, false)) text_ += ',';
    newLine();
  }
  first_ = false;
  text_ += text;
}

}  // namespace tutti
