// Layout of the 128 bytes: magic 4 (the last one is the version), secret 16, job 8, count 1, the addresses, zeros, and
// a checksum of 4 over all before it. An address is a tag 1 (4: IPv4, 6: IPv6, 7: IPv6 with a scope), the port 2, the
// scope 4 where the tag says so, and the ip 4 or 16: thirteen IPv4 or five IPv6 addresses fit.
#include "job/unique_id.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"

namespace tutti::control {
namespace {

constexpr std::array<uint8_t, 4> kMagic = {'t', 'u', 'I', 1};
constexpr size_t kChecksumBytes = 4;
constexpr size_t kBodyBytes = kUniqueIdBytes - kChecksumBytes;

Bytes encodeAddress(const Address& address) {
  Writer out;
  const bool scoped = address.v6 && address.scope != 0;
  out.value<uint8_t>(!address.v6 ? 4 : scoped ? 7 : 6).value(address.port);
  if (scoped) out.value(address.scope);
  for (size_t i = 0; i < (address.v6 ? 16U : 4U); ++i) out.value(address.ip[i]);
  return out.take();
}

Address decodeAddress(Reader& in) {
  Address address;
  const auto tag = in.value<uint8_t>();
  if (tag != 4 && tag != 6 && tag != 7) throw Error(ErrorCode::kInvalidArgument, "an unknown kind of address");
  address.v6 = tag != 4;
  address.port = in.value<uint16_t>();
  if (tag == 7) address.scope = in.value<uint32_t>();
  for (size_t i = 0; i < (address.v6 ? 16U : 4U); ++i) address.ip[i] = in.value<uint8_t>();
  return address;
}

std::array<std::byte, kChecksumBytes> checksum(const RawUniqueId& raw) {
  std::array<std::byte, kChecksumBytes> sum{};
  hashInto(sum.data(), sum.size(), raw.data(), kBodyBytes);
  return sum;
}

[[noreturn]] void refuseId(const char* why) {
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("not a unique id of this version of tutti: {}. Pass on the {} bytes that tuttiGetUniqueId gave, "
                  "unchanged",
                  why, kUniqueIdBytes));
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool isPublic(const UniqueId& id) noexcept { return id.secret == Secret{}; }

bool isExposed(const UniqueId& id) noexcept { return id.exposed || (isPublic(id) && !id.addresses.empty()); }

namespace {

Secret hashed(const Secret& what, std::span<const std::byte> under) noexcept {
  Secret hash;
  hashInto(hash.data(), hash.size(), under.data(), under.size(), what.data(), what.size());
  return hash;
}

}  // namespace

Secret provenBy(const UniqueId& id) noexcept {
  return id.beside == Secret{} ? id.secret : hashed(id.beside, id.secret);
}

Secret markOf(const Secret& beside) noexcept {
  static constexpr char kLabel[] = "tutti mark of a secret";
  return hashed(beside, std::as_bytes(std::span(kLabel, sizeof kLabel - 1)));
}

UniqueId inherit(UniqueId told, const UniqueId& parent) {
  told.place = "where one of the parent communicator's ranks has opened a root";
  told.exposed = isExposed(parent);
  Writer both;
  both.value(told.job).block(told.secret);
  const Bytes bytes = both.take();
  const Secret above = provenBy(parent);
  hashInto(told.secret.data(), told.secret.size(), bytes.data(), bytes.size(), above.data(), above.size());
  return told;
}

RawUniqueId encode(const UniqueId& id) {
  Writer out;
  for (const uint8_t b : kMagic) out.value(b);
  for (const std::byte b : id.secret) out.value(b);
  out.value(id.job);
  Bytes body = out.take();
  Bytes list;
  uint8_t count = 0;
  for (const Address& address : id.addresses) {
    const Bytes one = encodeAddress(address);
    if (body.size() + 1 + list.size() + one.size() > kBodyBytes) continue;
    list.insert(list.end(), one.begin(), one.end());
    ++count;
  }
  body.push_back(std::byte{count});
  body.insert(body.end(), list.begin(), list.end());
  RawUniqueId raw{};
  std::copy(body.begin(), body.end(), raw.begin());
  const auto sum = checksum(raw);
  std::copy(sum.begin(), sum.end(), raw.begin() + kBodyBytes);
  return raw;
}

UniqueId decode(const RawUniqueId& raw) {
  if (std::memcmp(raw.data(), kMagic.data(), kMagic.size() - 1) != 0) refuseId("it does not begin like one");
  if (static_cast<uint8_t>(raw[3]) != kMagic[3]) refuseId("its version differs");
  const auto sum = checksum(raw);
  if (!std::equal(sum.begin(), sum.end(), raw.begin() + kBodyBytes)) refuseId("its checksum is wrong");
  UniqueId id;
  Reader in({raw.data() + kMagic.size(), kBodyBytes - kMagic.size()});
  for (std::byte& b : id.secret) b = in.value<std::byte>();
  id.job = in.value<uint64_t>();
  const auto count = in.value<uint8_t>();
  try {
    for (int i = 0; i < count; ++i) id.addresses.push_back(decodeAddress(in));
  } catch (const Error& e) {
    refuseId(e.what());
  }
  return id;
}

UniqueId decodeTold(std::span<const std::byte> bytes) {
  RawUniqueId raw;
  if (bytes.size() != raw.size())
    throw Error(ErrorCode::kRemote, fmt::format("a unique id of {} bytes, not {}", bytes.size(), raw.size()));
  std::copy(bytes.begin(), bytes.end(), raw.begin());
  try {
    return decode(raw);
  } catch (const Error& e) {
    throw Error(ErrorCode::kRemote, e.what());
  }
}

std::string toHex(const RawUniqueId& raw) {
  std::string text;
  for (const std::byte b : raw) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

RawUniqueId fromHex(std::string_view text) {
  if (text.size() != 2 * kUniqueIdBytes)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("a unique id has {} hex digits, this text has {} characters",
                                                         2 * kUniqueIdBytes, text.size()));
  RawUniqueId raw{};
  for (size_t i = 0; i < kUniqueIdBytes; ++i) {
    const int high = hexDigit(text[2 * i]), low = hexDigit(text[2 * i + 1]);
    if (high < 0 || low < 0)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("a unique id in hex has a stray character near {}", 2 * i));
    raw[i] = static_cast<std::byte>(high * 16 + low);
  }
  return raw;
}

}  // namespace tutti::control
