// From what the launcher said to a unique id.
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/handshake.h"
#include "base/log.h"
#include "control/launcher.h"
#include "control/root.h"

namespace tutti::control {
namespace {

struct FileCloser {
  void operator()(FILE* file) const noexcept { std::fclose(file); }
};

bool isHex(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// Waits for the file to be there whole. Sleeps on the folder's changes; on file systems of other hosts, which report
// none, it looks every 50 ms.
RawUniqueId waitForIdFile(const std::string& path, Deadline deadline) {
  const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (watch) ::inotify_add_watch(watch.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE);
  for (;;) {
    std::string why;
    try {
      return fromHex(readSmallFile(path));
    } catch (const Error& e) {
      why = e.what();
    }
    if (deadline.passed())
      throw Error(ErrorCode::kTimeout,
                  fmt::format("TUTTI_ID_FILE={}: no unique id came before the deadline ({})", path, why));
    pollfd ready{watch.get(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(50, deadline.left().count() + 1)));
    std::array<char, 4096> changes;
    while (watch && ::read(watch.get(), changes.data(), changes.size()) > 0) {
    }
  }
}

Address addressOf(const addrinfo& info, uint16_t port) {
  Address address;
  address.port = port;
  if (info.ai_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(info.ai_addr);
    address.v6 = true;
    address.scope = in6->sin6_scope_id;
    std::memcpy(address.ip.data(), &in6->sin6_addr, 16);
  } else {
    std::memcpy(address.ip.data(), &reinterpret_cast<const sockaddr_in*>(info.ai_addr)->sin_addr, 4);
  }
  return address;
}

std::vector<Address> resolve(const std::string& host, uint16_t port, int family) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
  addrinfo* list = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list))
    throw Error(ErrorCode::kSystem,
                fmt::format("cannot resolve {}, where the ranks are to meet: {}", host, ::gai_strerror(code)));
  std::vector<Address> addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) addresses.push_back(addressOf(*info, port));
  ::freeaddrinfo(list);
  return addresses;
}

// Without a secret from the launcher, everyone who can reach the address could join.
Secret secretOf(const Launch& launch) {
  if (launch.secret) return *launch.secret;
  if (launch.rootPort != 0 && launch.rank == 0)
    log::warn("joining at {}:{} is not authenticated: set TUTTI_SECRET or TUTTI_SECRET_FILE on every rank",
              *launch.rootHost, launch.rootPort);
  return {};
}

}  // namespace

Secret secretFromText(const std::string& text) {
  Secret secret{};
  if (text.size() == 2 * kSecretBytes && isHex(text)) {
    for (size_t i = 0; i < kSecretBytes; ++i)
      secret[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  } else {
    hashInto(secret.data(), secret.size(), text.data(), text.size());
  }
  return secret;
}

std::string readSmallFile(const std::string& path) {
  const std::unique_ptr<FILE, FileCloser> file(std::fopen(path.c_str(), "re"));
  if (!file) throw Error(ErrorCode::kInvalidUsage, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::string text(size_t{64} << 10, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

UniqueId meetingPlace(const Launch& launch, const Network& network, Deadline deadline) {
  if (launch.id) return decode(*launch.id);
  if (launch.idFile) return decode(waitForIdFile(*launch.idFile, deadline));
  if (!launch.rootHost) throw Error(ErrorCode::kInvalidUsage, "nothing says where the ranks meet");
  RootPlace place;
  place.port = launch.rootPort;
  place.tcp = launch.rootPort != 0;
  place.id.secret = secretOf(launch);
  const std::string name = fmt::format("tutti job {} {} {}", *launch.rootHost, launch.rootPort, launch.jobKey);
  hashInto(&place.id.job, sizeof place.id.job, name.data(), name.size(), place.id.secret.data(),
           place.id.secret.size());
  if (launch.rank == 0) return openRootAt(place, network, deadline);
  if (place.tcp) place.id.addresses = resolve(*launch.rootHost, launch.rootPort, network.family);
  return place.id;
}

}  // namespace tutti::control
