#include "plan/profile_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/plain_text.h"
#include "base/random.h"
#include "plan/measured_json.h"
#include "plan/profile_prices.h"

namespace tutti::plan {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "tutti_profile";
constexpr int kVersion = 1;
constexpr size_t kMostBytes = 1 << 20;

[[noreturn]] void refuse(const std::string& source, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", source, why));
}

const Price* priceOf(const std::string& name) {
  for (const Price& price : kPrices)
    if (name == price.name) return &price;
  return nullptr;
}

std::string allNames() {
  std::string names;
  for (const Price& price : kPrices) names += fmt::format("{}{}", names.empty() ? "" : ", ", price.name);
  return names;
}

void take(Profile& profile, const std::string& name, const Json& value, const std::string& source) {
  const Price* price = priceOf(name);
  if (price == nullptr) refuse(source, fmt::format("there is no price called '{}'; there are {}", name, allNames()));
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (!(number >= price->low && number <= price->high))
    refuse(source, fmt::format("{} is to be a number from {} to {}, not {}", name, price->low, price->high,
                               value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40)));
  price->of(profile) = number;
}

}  // namespace

std::string profileText(const Profile& profile, const std::string& about) {
  Profile copy = profile;
  Json prices = Json::object();
  for (const Price& price : kPrices) prices[price.name] = price.of(copy);
  Json whole = {{kFormat, kVersion}, {"about", about}, {"prices", prices}};
  if (profile.measured != Measurements()) whole["measured"] = jsonOf(profile.measured);
  return whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Profile profileFromText(const std::string& text, const std::string& source) {
  if (jsonDepth(text) > kMostJsonDepth) refuse(source, "no profile: it is nested deeper than any");
  const Json whole = Json::parse(text, nullptr, false);
  if (!whole.is_object() || !whole.contains(kFormat) || !whole.contains("prices") || !whole["prices"].is_object())
    refuse(source,
           fmt::format("no profile: JSON with \"{}\": {} and \"prices\" is; tutti-tune writes it", kFormat, kVersion));
  if (whole[kFormat] != kVersion)
    refuse(source,
           fmt::format("a profile of version {}; this library reads version {}", whole[kFormat].dump(), kVersion));
  Profile profile;
  for (const auto& [name, value] : whole["prices"].items()) take(profile, name, value, source);
  if (whole.contains("measured")) profile.measured = measuredFrom(whole["measured"], source);
  return profile;
}

Profile readProfile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) refuse(path, "can not be read: it is no file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  if (text.empty())
    refuse(path, errno != 0 ? fmt::format("can not be read: {} (errno {})", std::strerror(errno), errno) : "is empty");
  if (text.size() > kMostBytes) refuse(path, fmt::format("has more than {} bytes, which no profile has", kMostBytes));
  return profileFromText(text, path);
}

std::string digestOf(const Profile& profile) {
  if (profile == Profile()) return "shipped";
  const std::string text = profileText(profile, "");
  uint64_t hash = 0;
  hashInto(&hash, sizeof hash, text.data(), text.size());
  return fmt::format("{:016x}", hash);
}

std::string originOf(const Profile& profile) {
  const std::string digest = digestOf(profile);
  if (digest == "shipped") return "shipped with the library";
  const size_t series = profile.measured.series().size();
  return fmt::format("of TUTTI_PROFILE, {}", digest) +
         (series == 0 ? "" : fmt::format(", and {} series that were measured", series));
}

}  // namespace tutti::plan
