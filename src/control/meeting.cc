// From what the launcher said to a unique id.
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/handshake.h"
#include "base/log.h"
#include "control/launcher.h"
#include "control/pmi.h"
#include "control/root.h"

namespace tutti::control {
namespace {

constexpr std::chrono::milliseconds kAskAgain(200);

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

// Without a secret everyone who can reach the address could join. Said once, by one rank.
void warnOfStrangers(const Launch& launch) {
  static std::once_flag once;
  if (launch.secret || launch.rank != 0) return;
  std::call_once(once, [&] {
    log::warn(
        "joining at {}:{} is not authenticated: whoever can reach that port can join the job or spoil it. Put the same "
        "random text into TUTTI_SECRET, or into a file that TUTTI_SECRET_FILE names, on every rank",
        *launch.rootHost, launch.rootPort);
  });
}

// Host names of pods appear a while after the pods: a name that is not known yet is asked for again.
std::vector<Address> resolveInTime(const Launch& launch, int family, Deadline deadline) {
  bool told = false;
  for (;;) {
    try {
      return resolve(*launch.rootHost, launch.rootPort, family);
    } catch (const Error& e) {
      if (deadline.passed()) throw;
      if (!told) log::warn("{}; trying again until the deadline", e.what());
      told = true;
    }
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(kAskAgain, deadline.left()));
  }
}

// Through the key-value space of the process manager.
UniqueId shareThroughPmi(const Launch& launch, const Network& network, Deadline deadline) {
  const std::string key = fmt::format("tutti-{}", launch.pmiKey);
  pmi::Client client(launch.pmi, deadline);
  if (launch.rank == 0) {
    UniqueId id = openRoot(network, deadline);
    client.put(key, toHex(encode(id)));
    client.barrier();
    return id;
  }
  client.barrier();
  return decode(fromHex(client.get(key)));
}

// One that every rank can work out: the root's port and Unix socket follow from what the launcher says.
UniqueId deriveId(const Launch& launch, const Network& network, Deadline deadline) {
  RootPlace place;
  place.tcp = !(launch.oneHost && network.unixSockets);
  place.port = place.tcp ? launch.rootPort : uint16_t{0};
  place.id.secret = launch.secret.value_or(Secret{});
  if (place.tcp) warnOfStrangers(launch);
  const std::string name = fmt::format("tutti job {} {} {} {}", launch.rootHost.value_or("localhost"), launch.rootPort,
                                       launch.jobKey, launch.oneHost ? ::geteuid() : 0);
  hashInto(&place.id.job, sizeof place.id.job, name.data(), name.size(), place.id.secret.data(),
           place.id.secret.size());
  if (launch.rank == 0) return openRootAt(place, network, deadline);
  if (place.tcp) place.id.addresses = resolveInTime(launch, network.family, deadline);
  return place.id;
}

}  // namespace

UniqueId meetingPlace(const Launch& launch, const Network& network, Deadline deadline) {
  if (launch.id) return decode(*launch.id);
  if (launch.idFile) return decode(waitForIdFile(*launch.idFile, deadline));
  if (!(launch.oneHost && network.unixSockets)) {
    if (launch.pmi >= 0) return shareThroughPmi(launch, network, deadline);
    if (!launch.rootHost)
      throw Error(ErrorCode::kInvalidUsage,
                  "nothing but a Unix socket is known where the ranks could meet, and TUTTI_UNIX_SOCKETS=0 forbids it: "
                  "set TUTTI_ROOT=host:port");
  }
  return deriveId(launch, network, deadline);
}

}  // namespace tutti::control
