#include "launch/rendezvous.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/random.h"
#include "job/remedies.h"
#include "job/secret.h"
#include "join/open_root.h"
#include "join/root.h"
#include "launch/pmi.h"
#include "net/network.h"
#include "net/socket.h"
#include "process/log.h"
#include "process/private_file.h"
#include "process/user_folder.h"

namespace tutti::control {
namespace {

constexpr std::chrono::milliseconds kAskAgain(200);
constexpr const char* kManagerPlace = "at addresses of rank 0's host, which the process manager hands out";

// A file that holds a unique id, or will.
class IdFile {
 public:
  explicit IdFile(const std::string& path) : path_(path) {}
  // None: not yet, and pending() says why. Throws Error for what no waiting mends.
  std::optional<UniqueId> look() try {
    const std::string text = readPrivateFile(path_, kMostFileBytes);
    if (mayGrow(text)) return std::nullopt;
    return decode(fromHex(text));
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kInvalidUsage) refuse(e.code(), e.what());
    if (e.code() == ErrorCode::kInvalidArgument) refuse(e.code(), e.what() + std::string(kWhoWrites));
    pending_ = e.what();
    return std::nullopt;
  }
  [[noreturn]] void expire(const BoundedWait& patience) const {
    refuse(ErrorCode::kTimeout,
           fmt::format("no unique id came before {} ({}){}", patience.name(), pending_, kWhoWrites));
  }

 private:
  // Whoever writes it may be in the middle of it; what has stood still for long has been left so.
  bool mayGrow(const std::string& text) {
    if (text.size() >= 2 * kUniqueIdBytes || text.find_first_not_of(kHexDigits) != text.npos) return false;
    if (text.size() != digits_) still_ = Deadline::in(kStandsStill);
    digits_ = text.size();
    pending_ = text.empty() ? "it is empty" : fmt::format("it has {} of {} hex digits", digits_, 2 * kUniqueIdBytes);
    return text.empty() || !still_.passed();
  }
  [[noreturn]] void refuse(ErrorCode code, const std::string& why) const {
    throw Error(code, fmt::format("TUTTI_ID_FILE={}: {}", path_, why));
  }

  static constexpr const char* kWhoWrites = "; docs/launchers.md says who writes it, and how";
  static constexpr const char* kHexDigits = "0123456789abcdefABCDEF";
  static constexpr std::chrono::seconds kStandsStill{5};
  const std::string& path_;
  std::string pending_;
  size_t digits_ = 0;
  Deadline still_ = Deadline::never();
};

// Waits for the file to be there whole. Sleeps on the folder's changes; on file systems of other hosts, which report
// none, it looks every 50 ms.
UniqueId waitForIdFile(const std::string& path, const BoundedWait& patience) {
  const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (watch) ::inotify_add_watch(watch.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE);
  for (IdFile file(path);;) {
    if (const auto id = file.look()) return *id;
    if (patience.over()) file.expire(patience);
    pollfd ready{watch.get(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(patience.step().count()) + 1);
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

// May take the resolver many seconds, by its own settings, and cannot be interrupted.
std::vector<Address> resolve(const std::string& host, uint16_t port, int family) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
  addrinfo* made = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &made))
    throw Error(ErrorCode::kSystem,
                fmt::format("cannot resolve {}, where the ranks are to meet{}: {}", host,
                            family == 0 ? "" : fmt::format(", to an IPv{} address (TUTTI_SOCKET_FAMILY)", family),
                            code == EAI_SYSTEM ? errnoText(errno) : ::gai_strerror(code)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(made, ::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* info = made; info != nullptr; info = info->ai_next) addresses.push_back(addressOf(*info, port));
  return addresses;
}

// The family of a host that is an address; 0: it is a name.
int familyOfHost(const std::string& host) noexcept {
  in_addr v4;
  if (host.find(':') != host.npos) return 6;
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 ? 4 : 0;
}

std::string placeOf(const LaunchInfo& launch) {
  const bool v6 = familyOfHost(*launch.rootHost) == 6;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", *launch.rootHost, v6 ? "]" : "", launch.rootPort);
}

// Without a secret everyone who can reach the address could join. Said once, by one rank.
void warnOfStrangers(const LaunchInfo& launch) {
  static std::once_flag once;
  if (launch.secret || launch.rank != 0) return;
  std::call_once(once, [&] {
    log::warn(
        "joining at {} is not authenticated: whoever can reach that port can join the job or spoil it. Put the same "
        "random text into TUTTI_SECRET, or into a file that TUTTI_SECRET_FILE names, on every rank",
        placeOf(launch));
  });
}

// The same: who has seen the ranks join can try every text that people think of.
void warnIfGuessable(const std::string& secret, int rank) {
  static std::once_flag once;
  if (rank != 0 || strengthOf(secret) >= kEnoughBits) return;
  std::call_once(once, [] {
    log::warn(
        "the secret of this job looks as if it could be guessed (TUTTI_SECRET or TUTTI_SECRET_FILE): make one with "
        "`(umask 077; head -c 32 /dev/urandom | base64 > ~/tutti-secret)`, and name that file in TUTTI_SECRET_FILE on "
        "every rank");
  });
}

// The variables that say where, as far as any do: the first two say who.
std::string nameOfRoot(const LaunchInfo& launch) {
  const size_t first = launch.source.find('/'), second = launch.source.find('/', first + 1);
  if (first == std::string::npos) return launch.source;
  if (second == std::string::npos) return "launcher";
  std::string names = launch.source.substr(second + 1);
  for (size_t at = 0; (at = names.find('/', at)) != std::string::npos;) names.replace(at, 1, ", ");
  return names;
}

// No waiting makes another address of it.
void requireFamily(const LaunchInfo& launch, const Network& network) {
  const int named = familyOfHost(*launch.rootHost);
  if (named == 0 || network.family == 0 || named == network.family) return;
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("the ranks are to meet at {} ({}), an IPv{} address, and rank {} may use none "
                          "(TUTTI_SOCKET_FAMILY={}): name an IPv{} address of rank 0's host, or leave "
                          "TUTTI_SOCKET_FAMILY out",
                          placeOf(launch), nameOfRoot(launch), named, launch.rank, network.family, network.family));
}

// Host names of pods appear a while after the pods: a name that is not known yet is asked for again.
std::vector<Address> resolveInTime(const LaunchInfo& launch, int family, const BoundedWait& patience) {
  bool told = false;
  for (;;) {
    try {
      return resolve(*launch.rootHost, launch.rootPort, family);
    } catch (const Error& e) {
      if (patience.over())
        throw Error(e.code(), fmt::format("{} ({}); tried until {}", e.what(), nameOfRoot(launch), patience.name()));
      if (!told) log::warn("{} ({}); trying again until the deadline", e.what(), nameOfRoot(launch));
      told = true;
    }
    patience.sleep(kAskAgain);
  }
}

UniqueId idFrom(pmi::Client& manager, const std::string& key) {
  UniqueId id = decode(fromHex(manager.get(key)));
  id.place = kManagerPlace;
  return id;
}

// Through the key-value space of the process manager.
UniqueId shareThroughPmi(const LaunchInfo& launch, const Network& network, const BoundedWait& patience,
                         Deadline rootsEnd) {
  const std::string key = fmt::format("tutti-{}", launch.pmiKey);
  pmi::Client client(launch.pmi, patience);
  if (launch.rank == 0) {
    RootPlace place = anyRootPlace();
    place.id.place = kManagerPlace;
    UniqueId id = openRootAt(place, network, rootsEnd);
    client.put(key, toHex(encode(id)));
    client.barrier();
    return id;
  }
  client.barrier();
  return idFrom(client, key);
}

// Whether rank 0 will listen at that address, as far as this host knows.
bool isOwn(Address address, const Network& network, const std::vector<Address>& chosen) {
  address.port = 0;
  if (!network.interfaces.empty()) return std::find(chosen.begin(), chosen.end(), address) != chosen.end();
  return listenTcp(address, false) || errno != EADDRNOTAVAIL;
}

// Of rank 0: empty when the place is here. Something that nobody here can see may forward it, as networks of containers
// do; so it is no error.
std::string doubtOf(const LaunchInfo& launch, const Network& network) try {
  const auto told = resolve(*launch.rootHost, launch.rootPort, network.family), chosen = chosenAddresses(network);
  if (std::any_of(told.begin(), told.end(), [&](const Address& one) { return isOwn(one, network, chosen); })) return {};
  std::string own;
  for (const Address& one : chosen) own += (own.empty() ? "" : ", ") + ipOf(one);
  return fmt::format(
      "rank 0 is to be met at {} ({}), which is none of the addresses of this host, {}, where it listens: {}. "
      "Unless it is forwarded here, nobody comes: name an address of rank 0's host, or give this process its own "
      "number if rank 0 is another",
      placeOf(launch), nameOfRoot(launch), hostName(), own);
} catch (const Error&) {
  return fmt::format(
      "rank 0 is to be met at {} ({}), a name that its own host, {}, does not know. Unless the other ranks know it, "
      "nobody comes",
      placeOf(launch), nameOfRoot(launch), hostName());
}

// What is told about the place when somebody does not come to it.
void describePlace(const LaunchInfo& launch, bool tcp, UniqueId& id) {
  id.place = tcp ? fmt::format("at {}, which must be an address of rank 0's host", placeOf(launch))
                 : fmt::format("at a Unix socket of this host, for user {} alone", ::geteuid());
  id.alike = launch.rootHost ? fmt::format("{}, TUTTI_JOB", nameOfRoot(launch)) : "TUTTI_JOB";
  if (launch.oneHost) id.alike += ", TUTTI_UNIX_SOCKETS";  // it decides where they look for each other
  id.ofOneUser = launch.oneHost;
}

// Whether a root of this user's may listen at one of the names.
bool isOursThere(const RootPlace& place) {
  const auto drawn = rootNameIn(place.id.folder, place.id.job);
  return isOfThisUser(holderOf(rootUnixName(place.id.job))) || (drawn && isOfThisUser(holderOf(*drawn)));
}

// A place that is taken may be so by another rank 0 of this job. Its root, which is called instead, tells both of it.
UniqueId openOrCall(RootPlace place, const Network& network, Deadline lifetime) {
  try {
    return openRootAt(place, network, lifetime);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kSystem || (!place.tcp && !isOursThere(place))) throw;
    place.id.taken = e.what();
  }
  if (!place.tcp) return place.id;
  place.id.addresses = chosenAddresses(network);
  for (Address& address : place.id.addresses) address.port = place.port;
  return place.id;
}

// Where nothing else keeps another user's processes out.
void requireKnownUsers(const LaunchInfo& launch) {
  if (launch.secret || tellsUsersApart()) return;
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("rank {} runs as user {}, as which the system also shows all users whom its user namespace "
                          "does not map (/proc/self/uid_map): at a Unix socket, ranks would take another user's "
                          "process for one of theirs. Run them as another user, or set the same {} on all ranks",
                          launch.rank, ::geteuid(), kSecretNames));
}

// One that every rank can work out: the root's port and Unix socket follow from what the launcher says. Of the secret
// there is nothing in the job's number, which every user of the host can see in the name of the socket.
UniqueId deriveId(const LaunchInfo& launch, const Network& network, const BoundedWait& patience, Deadline rootsEnd) {
  RootPlace place;
  place.tcp = !(launch.oneHost && network.unixSockets);
  place.port = place.tcp ? launch.rootPort : uint16_t{0};
  describePlace(launch, place.tcp, place.id);
  if (place.tcp) requireFamily(launch, network);
  place.tcp ? warnOfStrangers(launch) : requireKnownUsers(launch);
  if (launch.secret) warnIfGuessable(*launch.secret, launch.rank);
  const std::string name = fmt::format("tutti job {} {} {} {}", launch.rootHost.value_or("localhost"), launch.rootPort,
                                       launch.jobKey, launch.oneHost ? ::geteuid() : 0);
  hashInto(&place.id.job, sizeof place.id.job, name.data(), name.size());
  if (network.unixSockets) place.id.folder = chooseUserFolder(launch.folders);
  if (launch.secret) place.id.secret = secretFromText(*launch.secret, name);
  if (launch.rank == 0) {
    if (place.tcp) place.doubt = doubtOf(launch, network);
    if (!place.doubt.empty()) log::warn("{}", place.doubt);
    return openOrCall(place, network, rootsEnd);
  }
  if (place.tcp) place.id.addresses = resolveInTime(launch, network.family, patience);
  return place.id;
}

}  // namespace

UniqueId withSecret(UniqueId id, const std::optional<std::string>& secret, int rank) {
  if (!secret) return id;
  warnIfGuessable(*secret, rank);
  try {
    id.beside = secretFromText(*secret, fmt::format("unique id {:016x}", id.job));
  } catch (const std::exception& error) {  // for lack of memory: the others would wait for this rank
    tellRootHere(id.job, rank, 0, [&] { return fmt::format("rank {} could not join: {}", rank, error.what()); });
    throw;
  }
  return id;
}

UniqueId meetingPlace(const LaunchInfo& launch, const Network& network, const BoundedWait& patience) {
  return meetingPlace(launch, network, patience, patience.deadline());
}

UniqueId meetingPlace(const LaunchInfo& launch, const Network& network, const BoundedWait& patience,
                      Deadline rootsEnd) {
  const auto handed = [&](UniqueId id) { return withSecret(std::move(id), launch.secret, launch.rank); };
  if (launch.id) return handed(*launch.id);
  if (launch.idFile) return handed(waitForIdFile(*launch.idFile, patience));
  if (launch.size == 1)
    return openRootHere(network, patience.deadline());  // nobody else comes, whatever the place is called
  if (!(launch.oneHost && network.unixSockets)) {
    if (launch.pmi >= 0) return handed(shareThroughPmi(launch, network, patience, rootsEnd));
    if (!launch.rootHost)
      throw Error(ErrorCode::kInvalidUsage,
                  "nothing but a Unix socket is known where the ranks could meet, and TUTTI_UNIX_SOCKETS=0 forbids it: "
                  "set TUTTI_ROOT=host:port");
  }
  return deriveId(launch, network, patience, rootsEnd);
}

}  // namespace tutti::control
