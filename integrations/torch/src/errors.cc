#include "errors.h"

namespace tutti_torch {

namespace {
const std::string kWho = "tutti: ";
}

void fail(const std::string& text) {
  throw c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, kWho + text);
}

void check(tuttiResult_t result) {
  if (result == tuttiSuccess) return;
  const std::string text = tuttiGetLastError(nullptr);
  fail(text.empty() ? tuttiGetErrorString(result) : text);
}

std::exception_ptr failure(const std::string& text) {
  try {
    fail(text);
  } catch (...) {
    return std::current_exception();
  }
}

std::string textOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& thrown) {
    const std::string text = thrown.what_without_backtrace();
    return text.starts_with(kWho) ? text.substr(kWho.size()) : text;
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace tutti_torch
