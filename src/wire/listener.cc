#include "wire/listener.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "job/remedies.h"
#include "net/socket.h"
#include "process/descriptors.h"
#include "process/log.h"
#include "process/user_folder.h"

namespace tutti::control {
namespace {

constexpr std::chrono::seconds kHelloTime(5);
constexpr size_t kLeastPending = 16, kMostPending = 512;
constexpr std::chrono::milliseconds kPauseWithoutDescriptors(20);
// Where callers over the Unix socket come from: their user is known, unlike that of those over the loopback.
constexpr const char* kOwnUser = "@";
// Of who has proved the secret, and strangers can not.
constexpr std::chrono::milliseconds kTimeToGoOn(500);

bool isOnThisHost(const std::string& neighbourhood) { return neighbourhood.empty() || neighbourhood == kOwnUser; }

bool hasFamily(const std::vector<Address>& chosen, bool v6) {
  return std::any_of(chosen.begin(), chosen.end(), [&](const Address& a) { return a.v6 == v6; });
}

Address wildcard(bool v6, uint16_t port) {
  Address any;
  any.v6 = v6;
  any.port = port;
  return any;
}

bool isInRange(uint16_t port, const Network& network) { return port >= network.firstPort && port <= network.lastPort; }

std::string keptText(const Listener::Request& request) {
  if (request.kept == 0 || !isInRange(request.kept, request.network)) return "";
  return fmt::format(", {}, which the other ranks leave to it", request.kept);
}

[[noreturn]] void noPort(const Listener::Request& request, int error) {
  const Network& network = request.network;
  const bool lacks = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  if (lacks) throw systemError("cannot listen for the other ranks", error);
  if (request.port != 0)
    throw Error(ErrorCode::kSystem,
                fmt::format("cannot listen at port {}: {}. {}", request.port, errnoText(error),
                            error == EACCES
                                ? "Low ports are the system's own: choose one above 1023"
                                : "Another job may be using it, or another process that was told to be rank 0 as well; "
                                  "choose another port, and give each process a rank of its own"));
  if (network.firstPort != 0)
    throw Error(ErrorCode::kSystem,
                fmt::format("no free port from {} to {} (TUTTI_PORT_RANGE): {}. Each rank of a host needs one for each "
                            "communicator, and the process where the ranks meet one more while the ranks join{}: widen "
                            "the range",
                            network.firstPort, network.lastPort, errnoText(error), keptText(request)));
  throw systemError("cannot listen for the other ranks", error);
}

std::string describe(const std::optional<ucred>& holder) {
  return holder ? fmt::format("process {} of user {}", holder->pid, holder->uid) : "a process that does not answer";
}

// One that is there and as it should be has nothing left in it since nothing can be written there.
std::string whatTheFolderLacks() {
  const auto folders = userFolders();
  const auto own = std::ranges::find_if(folders, [](const auto& path) { return bool(openUserFolder(path)); });
  return own == folders.end() ? fmt::format("make {} a folder of yours with mode 0700", folders.back())
                              : fmt::format("make room in {}, where nothing can be written", *own);
}

std::string whenTheNameIsTaken(const std::string& unixName) {
  const auto holder = holderOf(unixName);
  if (isOfThisUser(holder)) return kGiveEachAJob;
  return fmt::format(
      "It is held by {}{}: give all ranks the same TUTTI_JOB, one that others cannot guess, or {}, in which ranks find "
      "a name that others do not know",
      describe(holder), holder && holder->uid != ::geteuid() ? ", and not by you" : "", whatTheFolderLacks());
}

// `unixError`: why there is no Unix socket, where one was wanted.
[[noreturn]] void nowhere(const Listener::Request& request, int unixError) {
  if (!request.network.unixSockets)
    throw Error(ErrorCode::kSystem,
                "cannot listen for the other ranks: no network interface has an address, and TUTTI_UNIX_SOCKETS=0 "
                "forbids a Unix socket. See `ip addr`");
  throw Error(ErrorCode::kSystem,
              fmt::format("cannot listen at the Unix socket @{}: {}{}", request.unixNames.front(), errnoText(unixError),
                          unixError == EADDRINUSE ? ". " + whenTheNameIsTaken(request.unixNames.front()) : ""));
}

}  // namespace

Listener::Listener(Reactor& reactor, const Request& request, Arrival arrival)
    : reactor_(reactor),
      context_(request.context),
      awaited_(request.shut ? uint32_t{0} : uint32_t{EPOLLIN}),
      arrival_(std::move(arrival)),
      maxPending_(quarterOfFiles(kLeastPending, kMostPending)),
      refusals_(reactor) {
  context_.seen = &seen_;
  endpoint_.id = context_.listener;
  const int unixError = request.network.unixSockets ? openUnix(request) : 0;
  if (request.tcp) openTcp(request);
  if (sockets_.empty()) nowhere(request, unixError);
}

// 0, or why there is none. Where a job of this user's holds the first name, callers would take that one for this; of
// another user's socket they think nothing, and go on to the next name.
int Listener::openUnix(const Request& request) {
  int error = 0;
  for (const std::string& name : request.unixNames) {
    UniqueFd fd = listenUnix(name);
    if (fd) {
      if (endpoint_.unixName.empty()) endpoint_.unixName = name;
      add(std::move(fd));
      continue;
    }
    error = errno;
    const auto holder = error == EADDRINUSE ? holderOf(name) : std::nullopt;
    const bool others = error == EADDRINUSE && !looksLikeThisUser(holder);
    const bool last = &name == &request.unixNames.back() && !request.tcp;
    if (endpoint_.unixName.empty() && (!others || last)) return error;
    if (others)
      log::warn(
          "{} holds the name @{}, at which ranks look for rank 0: those that share no folder of yours with it do "
          "not find it at a Unix socket",
          describe(holder), name);
    else
      log::info("there is no Unix socket @{}, one of two at which ranks look for rank 0: {}", name, errnoText(error));
  }
  return endpoint_.unixName.empty() ? error : 0;
}

// One port serves all addresses, so that a range of ports counts ranks and not addresses.
void Listener::openTcp(const Request& request) {
  const auto chosen = chosenAddresses(request.network);
  if (chosen.empty()) return;  // no network at all: the Unix socket remains
  uint32_t first = request.port, last = request.port;
  if (request.port == 0) first = request.network.firstPort, last = request.network.lastPort;
  errno = EADDRINUSE;  // of a range that is nothing but the kept one
  for (uint32_t port = first; port <= last; ++port) {
    if (request.kept != 0 && port == request.kept) continue;
    const bool all = request.network.interfaces.empty();
    if (all ? openWildcards(request, chosen, static_cast<uint16_t>(port))
            : openSelected(chosen, static_cast<uint16_t>(port)))
      return;
  }
  noPort(request, errno);
}

// Without a selection of interfaces one socket takes both families; where IPv6 is off, or only one is wanted, one of
// that family. True when it stands; false with errno set.
bool Listener::openWildcards(const Request& request, const std::vector<Address>& chosen, uint16_t port) {
  const bool v4 = hasFamily(chosen, false) && request.network.family != 6;
  const bool v6 = hasFamily(chosen, true) && request.network.family != 4;
  UniqueFd fd = listenTcp(wildcard(v6, port), v4);
  const bool both = static_cast<bool>(fd) && v6 && v4;
  bool only6 = static_cast<bool>(fd) && !v4;
  if (!fd && v6 && v4 && errno != EADDRINUSE) {
    fd = listenTcp(wildcard(false, port), false);
    only6 = false;
  }
  if (!fd) return false;
  const uint16_t got = portOf(fd.get());
  for (Address address : chosen) {
    if (!both && address.v6 != (v6 && only6)) continue;
    address.port = got;
    endpoint_.addresses.push_back(address);
  }
  add(std::move(fd));
  return true;
}

// With a selection, one socket per chosen address: nothing listens on the others. Within a
// range of ports all share one.
bool Listener::openSelected(const std::vector<Address>& chosen, uint16_t port) {
  std::vector<UniqueFd> opened;
  std::vector<Address> addresses;
  for (Address address : chosen) {
    address.port = port;
    UniqueFd fd = listenTcp(address, false);
    if (!fd) return false;
    address.port = portOf(fd.get());
    addresses.push_back(address);
    opened.push_back(std::move(fd));
  }
  endpoint_.addresses = std::move(addresses);
  for (UniqueFd& fd : opened) add(std::move(fd));
  return true;
}

void Listener::add(UniqueFd owned) {
  const int fd = owned.get();
  sockets_.push_back({std::move(owned), 0});
  sockets_.back().watch = reactor_.watch(fd, awaited_, [this, fd](uint32_t) { acceptFrom(fd); });
}

void Listener::open(const Secret& secret) noexcept {
  context_.secret = secret;
  awaited_ = EPOLLIN;
  for (const Socket& socket : sockets_) reactor_.change(socket.watch, awaited_);
}

void Listener::acceptFrom(int fd) {
  for (int i = 0; i < 64; ++i) {
    UniqueFd caller(::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (caller) {
      admit(std::move(caller));
      if (sockets_.empty()) return;  // the arrival closed this listener
      continue;
    }
    const int error = errno;
    if (error == EINTR || error == ECONNABORTED) continue;
    const bool lacks = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    // The system looks for a descriptor before it looks whether anybody waits.
    pollfd door{fd, POLLIN, 0};
    if (!lacks || ::poll(&door, 1, 0) <= 0) return lack_.ends();
    if (!makeWay(fd, error)) return;
  }
}

// What goes wrong with one caller keeps nobody else out: the system lacks something, or memory, and it will call again.
void Listener::admit(UniqueFd fd) try {
  const bool unix = isUnix(fd.get());
  if (unix && !sameUser(fd.get()))
    return refusals_.note(describePeer(fd.get()), "a Unix socket serves its own user only");
  if (!unix) setNoDelay(fd.get());
  std::string neighbourhood = unix ? kOwnUser : neighbourhoodOf(fd.get());
  makeRoom(neighbourhood);
  welcome(std::move(fd), std::move(neighbourhood));
} catch (const std::exception& e) {
  refusals_.note("a caller", e.what());
}

// One address has a share of the room and no more, so that whoever holds it with half hellos holds up only those who
// call from there as well.
void Listener::makeRoom(const std::string& neighbourhood) {
  const size_t share = std::max(kLeastPending, maxPending_ / 4);
  const auto own = isOnThisHost(neighbourhood) ? crowds_.end() : crowds_.find(neighbourhood);
  if (own != crowds_.end() && own->second >= share)
    drop(firstToGo(own), "too many callers from one address, of which it had said least for longest");
  else if (pending_.size() >= maxPending_)
    drop(firstToGo(), "too many callers at once, and most of them from there; it had said least for longest");
}

// Those who belong here speak at once: a crowd of silent strangers makes way for them. Of equals, the oldest.
Listener::PendingAt Listener::firstToGo(Crowds::const_iterator within) {
  auto first = pending_.end();
  for (auto at = pending_.begin(); at != pending_.end(); ++at) {
    if (at->crowd != within) continue;
    if (first == pending_.end() || at->line->helloSteps() < first->line->helloSteps()) first = at;
  }
  return first;
}

// Of the largest crowd; of equal ones of that whose caller has said least.
Listener::PendingAt Listener::firstToGo() {
  return std::min_element(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
    if (a.crowd->second != b.crowd->second) return a.crowd->second > b.crowd->second;
    return a.line->helloSteps() < b.line->helloSteps();
  });
}

void Listener::welcome(UniqueFd fd, std::string neighbourhood) {
  const auto crowd = crowds_.try_emplace(std::move(neighbourhood)).first;
  const auto at = pending_.insert(pending_.end(), Pending{crowd, Reactor::Clock::now(), nullptr, 0});
  ++crowd->second;
  try {
    await(at, Line::open(reactor_, std::move(fd), Handshake::Role::kServer, context_, {}));
  } catch (const std::exception&) {
    remove(at);
    throw;
  }
}

void Listener::remove(PendingAt at) noexcept {
  if (--at->crowd->second == 0) crowds_.erase(at->crowd);
  pending_.erase(at);
}

// A line that nothing is to be heard from, for lack of memory, would stay for ever.
void Listener::await(PendingAt at, const std::shared_ptr<Line>& caller) try {
  Line::Events events;
  events.namesPeer = true;
  events.closed = [this, at](const std::string& why) { drop(at, why); };
  events.frame = [this, at](Frame& first) {
    const auto line = at->line;
    reactor_.cancel(at->timer);
    remove(at);
    lack_.ends();
    arrival_(line, first);
  };
  caller->setEvents(std::move(events));
  at->line = caller;
  at->timer = reactor_.after(kHelloTime, [this, at] { drop(at, "said nothing for too long"); });
} catch (const std::exception&) {
  caller->close();
  throw;
}

void Listener::drop(PendingAt at, const std::string& why) {
  const auto line = at->line;
  reactor_.cancel(at->timer);
  remove(at);
  line->close();  // before what takes memory: its events are for what is pending
  if (line->unproven()) setText(lastUnproven_, line->peer());
  // Also a rank hangs up, during the hello or after it, on those of its calls that another was faster than.
  if (line->hungUp())
    log::info("{} left before it had said what it wants: {}", line->peer(), why);
  else
    refusals_.note(line->peer(), why);
}

void Listener::refuse(Line& caller, const std::string& why) noexcept {
  refusals_.note(caller.peer(), why);
  caller.close();
}

// The process has no descriptor left: one that waits idly gives way, or the door stays shut for a moment, since epoll
// would report the same caller again and again. Who has just come is let speak: callers that turned each other out
// would come to nothing, all of them. True: there is a descriptor now, and it is for who waits at this door. Whoever
// hangs on at another would get it again and again, and neither let anybody in nor let it be seen that none gets in.
bool Listener::makeWay(int fd, int error) {
  noteLackOfDescriptors();
  if (!std::exchange(toldOfDescriptors_, true))
    log::warn("cannot accept a connection: {}. Who calls waits", errnoText(error));
  const auto first = firstToGo();
  if (first == pending_.end()) return starve(fd, error), false;
  const auto grace = first->line->helloSteps() == 0 ? kPauseWithoutDescriptors : kTimeToGoOn;
  if (Reactor::Clock::now() - first->since < grace) return shutFor(fd, kPauseWithoutDescriptors), false;
  drop(first, "the process has no file descriptor left (see ulimit -n)");
  return true;
}

// Nobody is here who could give way.
void Listener::starve(int fd, int error) {
  lack_.begins();
  shutFor(fd, kPauseWithoutDescriptors);
  if (Lack::isOne(error) && lack_.lasts() && starved_) starved_(error);
}

void Listener::shutFor(int fd, std::chrono::milliseconds pause) {
  const auto at = std::find_if(sockets_.begin(), sockets_.end(), [&](const Socket& s) { return s.fd.get() == fd; });
  const auto token = at->watch;
  reactor_.change(token, 0);
  reactor_.after(pause, [this, token] { reactor_.change(token, EPOLLIN); });
}

void Listener::close() noexcept {
  refusals_.flush();
  for (Socket& socket : sockets_) reactor_.forget(socket.watch);
  sockets_.clear();
  for (Pending& one : pending_) {
    reactor_.cancel(one.timer);
    one.line->close();
  }
  pending_.clear();
  crowds_.clear();
}

}  // namespace tutti::control
