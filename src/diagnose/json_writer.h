// JSON as text, from its first bracket to its last. No tree of values is made: those of nlohmann's library allocate in
// their destructors, and where memory runs out half-way that would end the process.
#pragma once
#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace tutti {

// In quotes. What is no UTF-8, as may come from outside, is replaced. `ascii`: everything else is escaped.
std::string jsonText(std::string_view text, bool ascii = false);

// An element a line, one space in for each bracket. Keys are not asked for twice; that is the caller's business.
class JsonWriter {
 public:
  // `body` writes what is between the brackets.
  template <class Body>
  void object(Body body) {
    nest("{}", body);
  }
  template <class Body>
  void array(Body body) {
    nest("[]", body);
  }
  // Before the value that it names.
  JsonWriter& key(std::string_view name);
  void value(std::string_view text) { element(jsonText(text)); }
  template <std::integral Number>
  void value(Number number) {
    if constexpr (std::same_as<Number, bool>)
      element(number ? "true" : "false");
    else
      element(std::to_string(number));
  }
  void value(double number);  // null where it is no finite one
  void null() { element("null"); }
  void field(std::string_view name, const auto& of) { key(name).value(of); }

  std::string take() { return std::move(text_) + "\n"; }

 private:
  template <class Body>
  void nest(std::string_view brackets, Body& body) {
    element(brackets.substr(0, 1));
    ++depth_;
    first_ = true;
    body();
    --depth_;
    if (!std::exchange(first_, false)) newLine();
    text_ += brackets[1];
  }
  void element(std::string_view text);
  void newLine() { text_ += fmt::format("\n{:{}}", "", depth_); }

  std::string text_;
  int depth_ = 0;
  bool first_ = true;   // nothing stands between the innermost brackets yet
  bool named_ = false;  // a key stands last, and waits for its value
};

}  // namespace tutti
