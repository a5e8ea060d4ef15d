// Files with a unique id or a secret: a byte for the mode, then the content.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>

#include "base/error.h"
#include "fuzz/input.h"
#include "job/secret.h"
#include "job/unique_id.h"
#include "process/fd.h"
#include "process/private_file.h"

namespace tutti::fuzz {
namespace {

constexpr size_t kMostBytes = 1000;

std::string contentOf(int file) try {
  return readPrivateFile(fmt::format("/proc/self/fd/{}", file), kMostBytes);
} catch (const Error& error) {
  require(error.code() == ErrorCode::kInvalidUsage);
  return {};
}

void readId(const std::string& text) try {
  require(control::toHex(control::fromHex(text)).size() == text.size());
} catch (const Error& error) {
  require(error.code() == ErrorCode::kInvalidArgument);
}

void readFile(Input in) {
  const auto mode = static_cast<mode_t>(0600 | in.take<uint8_t>());
  const auto content = in.rest();
  const UniqueFd file(::memfd_create("tutti-fuzz", MFD_CLOEXEC));
  require(file && ::fchmod(file.get(), mode) == 0);
  require(::write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  const std::string text = contentOf(file.get());
  require(text.empty() || (text.size() <= kMostBytes && std::isspace(static_cast<unsigned char>(text.back())) == 0));
  require(text.empty() || (mode & 026) == 0);  // a group may read what is root's, and to run it tells nothing
  const double strength = control::strengthOf(text);
  require(strength >= 0 && strength <= 8.0 * static_cast<double>(text.size()));
  readId(text);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::readFile({data, size});
  return 0;
}
