#include "team/team.h"

#include <fmt/format.h>

#include "process/log.h"

namespace tutti::comm {
namespace {

std::vector<topology::PeerInfo> decodePeerInfos(const control::Plane& plane) {
  std::vector<topology::PeerInfo> infos;
  for (int r = 0; r < plane.size(); ++r) infos.push_back(topology::decodePeerInfo(plane.info(r)));
  return infos;
}

// For what must not keep what follows it from being done.
template <class Body>
void tryTo(Body body) noexcept {
  try {
    body();
  } catch (const std::exception&) {  // no memory, or no thread
  }
}

}  // namespace

Team::Team(std::shared_ptr<control::Plane> plane, std::shared_ptr<Recorder> recorder, const Config& config,
           OnFailure onFailure)
    : config_(config),
      plane_(std::move(plane)),
      recorder_(std::move(recorder)),
      rank_(plane_->rank()),
      size_(plane_->size()),
      infos_(decodePeerInfos(*plane_)),
      registry_(registryFor(config)),
      ranksPerCore_(topology::ranksPerCore(infos_, rank_)),
      onFailure_(std::move(onFailure)),
      stopped_(plane_->failed()) {
  recorder_->expect(rank_, size_);
}

std::string Team::rankName(int rank) const {
  if (rank < 0 || rank >= size_) return "a rank";
  const auto& one = info(rank);
  return fmt::format("rank {} (host {}, pid {})", rank, one.hostName, one.pid);
}

bool Team::endedWithProcess() const {
  std::lock_guard lock(mutex_);
  const auto told = met_ ? std::nullopt : plane_->failure();
  return told && told->rank == rank_ && told->stop == control::Stop::kDeath;
}

Error Team::failure(const std::string& operation) const {
  {
    std::lock_guard lock(mutex_);
    if (met_) return *met_;
  }
  const auto told = plane_->failure();
  const bool at = !operation.empty();
  if (!told)
    return Error(ErrorCode::kRemote, fmt::format("the communicator was stopped{}{}", at ? " during " : "", operation));
  // A mismatch or an expired deadline says itself what was going on, on this rank too.
  if (told->code != ErrorCode::kRemote) return Error(told->code, told->text);
  return Error(ErrorCode::kRemote, fmt::format("{}{}{}", told->text, at ? ", during " : "", operation));
}

// The others are told first: nothing that goes wrong with what follows may keep it from them. An abort is told in any
// case: it also ends what goes on after a failure.
void Team::stop(control::Stop how, const Error& error) noexcept {
  bool first = true;
  tryTo([&] { first = noteFailure(error); });
  broken_.store(true, std::memory_order_release);
  const bool always = how != control::Stop::kError && how != control::Stop::kRevoke;
  if (always || (first && !stopped_.load())) tell(how, error);
  if (!first) return;
  log::info("{}", error.what());
  if (onFailure_) tryTo([&] { onFailure_(error); });
}

bool Team::noteFailure(const Error& error) {
  std::lock_guard lock(mutex_);
  if (met_) return false;
  met_ = error;
  return true;
}

void Team::tell(control::Stop how, const Error& error) const noexcept {
  // Errors that are everybody's are told as they are; those of this rank as what happened to it.
  const bool shared =
      how != control::Stop::kError || error.code() == ErrorCode::kInvalidUsage || error.code() == ErrorCode::kTimeout;
  const ErrorCode code = shared ? error.code() : ErrorCode::kRemote;
  std::string text = kNoMemory;
  tryTo([&] { text = shared ? error.what() : fmt::format("{} gave up: {}", rankName(rank_), error.what()); });
  plane_->fail({rank_, how, code, std::move(text)});
}

}  // namespace tutti::comm
