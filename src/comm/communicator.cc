#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/host_executor.h"
#include "diagnose/banner.h"
#include "diagnose/dumper.h"
#include "diagnose/neighbours.h"
#include "diagnose/preflight.h"
#include "gpu/group_launcher.h"
#include "join/last_call.h"
#include "join/open_root.h"
#include "join/root.h"

namespace tutti::comm {
namespace {

// Here alone it is asked where the buffers are.
std::unique_ptr<Executor> executorFor(Team& team) {
  const bool onGpus = std::ranges::any_of(team.infos(), [](const auto& info) { return info.device >= 0; });
  if (onGpus) return gpu::makeGpuExecutor(team);
  return std::make_unique<HostExecutor>(team);
}

// Parts of a communicator, for those who may hold them when nobody holds it any more.
// None stays with the caller, who might be the last to let go then, on a thread that the communicator waits for.
std::shared_ptr<Team> teamOf(std::shared_ptr<Communicator> whole) {
  Team& team = whole->team();
  return {std::move(whole), &team};
}
std::shared_ptr<Executor> executorOf(std::shared_ptr<Communicator> whole) {
  Executor& executor = whole->executor();
  return {std::move(whole), &executor};
}

void failBy(control::Plane& plane, const Error& why) noexcept {
  const Error text = errorOrOutOfMemory([&] {
    return Error(ErrorCode::kRemote, fmt::format("rank {} has joined, but cannot go on: {}", plane.rank(), why.what()));
  });
  control::Failure failure{plane.rank(), control::Stop::kError, ErrorCode::kRemote, {}};
  setText(failure.text, text.what());
  plane.fail(failure);
}

// The others have joined it too, and could wait for a rank that lacks something now: they hear of it before it leaves.
std::shared_ptr<Communicator> make(const std::shared_ptr<control::Plane>& plane, std::shared_ptr<Recorder> recorder,
                                   const Config& config, const Network& network) {
  // In memory of its own: handles keep weak references for ever, which must not keep all of it. And owned at every
  // moment, until the others have been told: its end is a leave in good order.
  std::unique_ptr<Communicator> alone;
  std::shared_ptr<Communicator> made;
  try {
    alone = std::make_unique<Communicator>(plane, std::move(recorder), config);
    made = std::move(alone);
    Neighbours::instance().add(teamOf(made));
    if (!config.dumpDirectory.empty()) Dumper::instance().add(executorOf(made));
    introduce(made->executor(), network);
    lookAtHosts(made->team(), network);
  } catch (const std::exception& thrown) {
    failBy(*plane, errorOf(thrown));
    throw;
  }
  return made;
}

// Where a rank of this communicator has died, its own tree says so; but perhaps a moment after the root's end is seen.
void awaitNews(const Team& team) {
  const Deadline enough = Deadline::in(std::chrono::milliseconds(500));
  while (!team.broken() && !enough.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// The root of a split's leader. Until that one has begun to join there nobody can have joined; nor will anybody where
// the parent has failed. Then all hear of the parent why.
class LedRoot {
 public:
  explicit LedRoot(const Team& parent) : parent_(parent) {}
  ~LedRoot() {
    if (waits_ && (!begun_ || parent_.broken())) control::closeRootHere(root_.job);
  }
  LedRoot(const LedRoot&) = delete;
  LedRoot& operator=(const LedRoot&) = delete;
  void open(control::ChildRoot root) noexcept {
    root_ = std::move(root);
    waits_ = true;
  }
  void begun() noexcept { begun_ = true; }
  void served() noexcept { waits_ = false; }
  const Bytes& told() const noexcept { return root_.told; }

 private:
  const Team& parent_;
  control::ChildRoot root_;
  bool waits_ = false, begun_ = false;
};

// The root may be of this process, which may end with what its caller is told here. After a deadline nobody is on his
// way any more.
void letOthersHear(const std::exception& why, uint64_t job, const Communicator::Cancelled& cancelled) noexcept {
  const auto* const error = dynamic_cast<const Error*>(&why);
  if (error == nullptr || error->code() != ErrorCode::kTimeout) control::awaitLastCallsHere(job, cancelled);
}

}  // namespace

std::shared_ptr<Communicator> Communicator::join(const control::UniqueId& id, int rank, int size, const Config& config,
                                                 const Self& self, const Cancelled& cancelled, const Begun& begun) try {
  const auto recorder = std::make_shared<Recorder>();
  control::JoinRequest request = requestFor(config, self, recorder);
  request.id = id;
  request.rank = rank;
  request.size = size;
  if (self.lack) {
    request.agreement = {};  // it may not know what it was to agree on
    control::tellRoot(request, [&] { return fmt::format("rank {} could not join: {}", rank, self.lack->text); });
  }
  self.check();
  if (!config.dumpDirectory.empty()) Dumper::instance().begin();
  constexpr std::chrono::milliseconds kLook(10);
  const control::BoundedWait patience(request.deadline, cancelled, rank);
  auto plane = control::Plane::begin(request);
  if (begun) begun();
  if (cancelled && cancelled())
    plane->fail(
        {rank, control::Stop::kError, ErrorCode::kRemote, control::gaveUpJoining(fmt::format("rank {}", rank))});
  while (!plane->awaitJoined(cancelled ? Deadline::in(kLook) : Deadline::never())) patience.check();
  return make(plane, recorder, config, self.network);
} catch (const std::bad_alloc& error) {  // which tells the root nothing of who is alone
  if (size > 1) letOthersHear(error, id.job, cancelled);
  throw;
} catch (const std::exception& error) {
  letOthersHear(error, id.job, cancelled);
  throw;
}

Communicator::Communicator(std::shared_ptr<control::Plane> plane, std::shared_ptr<Recorder> recorder,
                           const Config& config)
    : team_(std::move(plane), std::move(recorder), config, [this](const Error& why) { leaveRecord(why); }),
      executor_(executorFor(team_)) {}

// Freeing memory of a GPU waits for all that runs there. That may be the kernel of another rank of this process, which
// waits for this one: it must hear first that this one has left.
void Communicator::leave() noexcept {
  for (const uint64_t job : std::exchange(rootsToGrow_, {}))
    control::tellRootHere(job, team_.rank(), 0, [this] {
      return fmt::format("{} has left the communicator that was to grow", team_.rankName(team_.rank()));
    });
  executor_->end();
  team_.plane().leave();
}

Communicator::~Communicator() { leave(); }

const void* Communicator::addBuffer(const void* buffer, size_t bytes) {
  const void* const handle = registered_.add(buffer, bytes);
  try {
    executor_->addBuffer(handle, {static_cast<const std::byte*>(buffer), bytes});
  } catch (...) {
    registered_.remove(handle);
    throw;
  }
  return handle;
}

bool Communicator::endBuffer(const void* handle) {
  executor_->endBuffer(handle);
  return registered_.remove(handle);
}

std::shared_ptr<Communicator> Communicator::split(int color, int key, const Config& config, const Self& self,
                                                  const Cancelled& cancelled, const Begun& begun) {
  return split(Meeting::kSplit, color, key, config, self, cancelled, begun);
}

std::shared_ptr<Communicator> Communicator::duplicate(const Config& config, const Self& self,
                                                      const Cancelled& cancelled, const Begun& begun) {
  return split(Meeting::kDuplicate, 0, 0, config, self, cancelled, begun);
}

std::shared_ptr<Communicator> Communicator::split(Meeting call, int color, int key, const Config& config,
                                                  const Self& self, const Cancelled& cancelled,
                                                  const Begun& begun) try {
  const Deadline deadline = Deadline::in(config.joinTimeout);
  const Recorder::Splitting here(team_.recorder());
  control::Plane& plane = team_.plane();
  const auto entries = meet(team_, call, Writer().value(color).value(key).take(), deadline);
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int r = 0; r < team_.size(); ++r) {
    Reader reader(entries[static_cast<size_t>(r)]);
    const int theirColor = reader.value<int>();
    const bool near = color != kSplitByHost || team_.info(r).hostId == team_.info(team_.rank()).hostId;
    if (theirColor == color && near) members.emplace_back(reader.value<int>(), r);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& [theirKey, theirRank] : members) ranks.push_back(theirRank);
  const bool joins = color >= 0 || color == kSplitByHost;
  const bool leads = joins && ranks.front() == team_.rank();
  LedRoot root(team_);
  if (leads) root.open(plane.openChildRoot(self.network, deadline, ranks));
  const auto told = plane.allGather(root.told(), deadline);
  if (!joins) return nullptr;
  const int leader = ranks.front();
  const auto place = static_cast<size_t>(std::find(ranks.begin(), ranks.end(), team_.rank()) - ranks.begin());
  auto child = join(
      plane.childId(told[static_cast<size_t>(leader)], leader, place), static_cast<int>(place),
      static_cast<int>(ranks.size()), config, self, [&] { return team_.broken() || (cancelled && cancelled()); },
      [&] {
        root.begun();
        if (begun) begun();
      });
  root.served();
  return child;
} catch (const Error& error) {
  if (error.code() == ErrorCode::kRemote) awaitNews(team_);
  if (team_.broken()) throw team_.failure(call == Meeting::kDuplicate ? "duplicate" : "split");
  throw;
}

control::UniqueId Communicator::openRootToGrow() {
  auto id = control::openRoot(Network::fromEnvironment(), Deadline::in(team_.config().joinTimeout));
  rootsToGrow_.push_back(id.job);
  return id;
}

std::shared_ptr<Communicator> Communicator::grow(const Growth& growth, const Config& config, const Self& self,
                                                 const Cancelled& cancelled, const Begun& begun) {
  const uint64_t job = growth.id ? growth.id->job : 0;
  return control::orTellRootHere(job, team_.rank(), growth.ranks,
                                 [&] { return growInOrder(growth, config, self, cancelled, begun); });
}

std::shared_ptr<Communicator> Communicator::growInOrder(const Growth& growth, const Config& config, const Self& self,
                                                        const Cancelled& cancelled, const Begun& begun) try {
  const Recorder::Making making(team_.recorder());
  const auto recorder = std::make_shared<Recorder>();
  control::JoinRequest request = requestFor(config, self, recorder);
  request.rank = team_.rank();
  request.size = growth.ranks;
  try {
    if (team_.broken()) throw team_.failure("grow");
    request.id = withBeside(meetToGrow(team_, growth, request.deadline, begun), growth, team_.rank());
  } catch (const std::exception& error) {  // of those who join nobody else knows where they are
    if (!growth.id) throw;
    request.id = withBeside(*growth.id, growth, team_.rank());
    control::tellRoot(request, [&] { return notGrown(team_, error); });
    letOthersHear(error, request.id.job, cancelled);
    throw;
  }
  return joinGrown(request, config, self, recorder, cancelled);
} catch (const Error& error) {
  if (error.code() == ErrorCode::kRemote) awaitNews(team_);
  if (team_.broken()) throw team_.failure("grow");
  throw;
}

// Those who join hear where they meet why a rank of this communicator will not come. That it has ended is no reason
// while the new one is only being handed down: whoever has it may be done with this one.
std::shared_ptr<Communicator> Communicator::joinGrown(const control::JoinRequest& request, const Config& config,
                                                      const Self& self, std::shared_ptr<Recorder> recorder,
                                                      const Cancelled& cancelled) try {
  constexpr std::chrono::milliseconds kLook(10), kGrace(100);
  const control::BoundedWait patience(request.deadline, cancelled, request.rank);
  auto plane = control::Plane::begin(request);
  std::optional<Deadline> grace;
  while (!plane->awaitJoined(Deadline::in(kLook))) {
    patience.check();
    if (!team_.broken()) continue;
    if (!grace) grace = Deadline::in(kGrace);
    if (grace->passed())
      plane->fail({request.rank, control::Stop::kError, ErrorCode::kRemote, notGrown(team_, team_.failure("grow"))});
  }
  return make(plane, std::move(recorder), config, self.network);
} catch (const std::exception& error) {
  letOthersHear(error, request.id.job, cancelled);
  throw;
}

std::shared_ptr<Communicator> Communicator::shrink(const Config& config, const Self& self, std::span<const int> leftOut,
                                                   const Cancelled& cancelled) {
  executor_->waitUntilIdle();
  const auto recorder = std::make_shared<Recorder>();
  self.check();
  return make(team_.plane().shrink(requestFor(config, self, recorder), leftOut, cancelled), recorder, config,
              self.network);
}

void Communicator::leaveRecord(const Error& why) {
  if (team_.config().dumpDirectory.empty() || !team_.claimDump()) return;
  try {
    Dumper::instance().request(executorOf(shared_from_this()), why.what());
  } catch (const std::exception&) {  // no memory: the writer looks for failures as well, and may find some
    team_.giveUpDump();
    throw;
  }
}

}  // namespace tutti::comm
