// The one exception type. Building throws it, the C boundary (src/api) turns it into a result code and a text.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tutti {

// The same numbers as tuttiResult_t, which are NCCL's.
enum class ErrorCode : uint8_t {
  kCuda = 1,
  kSystem = 2,
  kInternal = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemote = 6,
  kInProgress = 7,
  kTimeout = 8
};

// What happened, to whom, and what to do: the text says all three. Copies share it, and threads have copies of their
// own: by a shared_ptr, whose count is compiled here, where a sanitizer sees it (std::runtime_error's is not).
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string what) : what_(std::make_shared<const std::string>(std::move(what))), code_(code) {}
  // No moves: what is left behind would have no text.
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override = default;
  const char* what() const noexcept override { return what_->c_str(); }
  ErrorCode code() const noexcept { return code_; }

 private:
  std::shared_ptr<const std::string> what_;
  ErrorCode code_;
};

// Of an Error its own; of what else is thrown, for lack of memory or a thread, kSystem.
ErrorCode codeOf(const std::exception& thrown) noexcept;

// For who must tell that memory has run out, which takes none; nor do copies of it. Made when the library is
// loaded, never destroyed.
extern const Error& outOfMemory;

// What `make` returns or, where there is no memory for it, the Error that says so.
template <class Make>
Error errorOrOutOfMemory(Make&& make) noexcept {
  try {
    return std::forward<Make>(make)();
  } catch (const std::exception&) {
    return outOfMemory;
  }
}

// Whatever was thrown, as an Error.
Error errorOf(const std::exception& thrown) noexcept;

// For a text that is kept where nothing may be thrown: one that memory is lacking for becomes kNoMemory, which is short
// enough for a std::string to hold without any.
inline constexpr const char* kNoMemory = "out of memory";
void setText(std::string& into, std::string_view text) noexcept;

// The system's text for `errnoValue`; where a limit of this process is in the way, also how to raise it.
std::string errnoText(int errnoValue);

// An Error of kSystem that ends in the text of `errnoValue`.
Error systemError(const std::string& what, int errnoValue);

}  // namespace tutti
