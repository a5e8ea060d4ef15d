#include "gpu/executor.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "engine/lane.h"
#include "gpu/engines.h"
#include "link/plugin.h"
#include "process/log.h"
#include "process/thread.h"
#include "site/at_hand.h"
#include "team/cluster.h"
#include "wire/messages.h"

namespace tutti::gpu {
namespace {

// The words in host memory: one line each for the report and the abort flag, then those of the record.
constexpr size_t kAbortAt = sizeof(device::Report), kProgressAt = kAbortAt + 128;
constexpr size_t kBarrierBytes = 16;

// A collective's channels count together with nothing else; each message between two ranks, and each of its channels,
// counts by itself.
size_t countersOf(const GpuLayout& shape) {
  return shape.channels + 2 * static_cast<size_t>(shape.size) * shape.messageChannels;
}

size_t endsOf(const GpuLayout& shape) {
  return static_cast<size_t>(kProtocols) * shape.allChannels() * static_cast<size_t>(shape.size);
}

size_t stateBytes(const GpuLayout& shape) {
  return 2 * endsOf(shape) * sizeof(device::End) + kBarrierBytes + (2 * countersOf(shape) + 1) * sizeof(uint32_t);
}

// A fabric that reaches the memory of other hosts makes one of them all: nothing goes over a network.
GpuLayout::Links linksOf(const site::Site& site, const std::vector<int>& groupOf, bool bridged) {
  GpuLayout::Links links{.gpuGBs = site.gpuGBs, .ringGBs = site.ringGBs};
  if (!bridged) return links;
  std::map<int, int> ranksOf;
  for (const int group : groupOf) links.ranksPerHost = std::max(links.ranksPerHost, ++ranksOf[group]);
  links.hosts = static_cast<int>(ranksOf.size());
  if (links.hosts > 1) links.nicGBs = site.nicGBs, links.networkGBs = site.networkGBs;
  return links;
}

comm::Explanation::Candidate kernelCandidate(const plan::DeviceChoice& choice) {
  return {describe(choice), std::string(nameOf(choice.algorithm)), std::string(nameOf(choice.protocol)),
          choice.channels, choice.predictedUs};
}

comm::Explanation explainKernels(const plan::DevicePlan& plan) {
  comm::Explanation explanation{kernelCandidate(plan.best), {}, plan.excluded, {}, ""};
  for (const plan::DeviceChoice& other : plan.others) explanation.others.push_back(kernelCandidate(other));
  explanation.prices = "shipped with the library";
  return explanation;
}

}  // namespace

GpuExecutor::GpuExecutor(comm::Team& team, const comm::GroupLauncher& launcher, GpuFaults onFault)
    : comm::Executor(team, launcher, {.takesCudaStreams = true, .readsFactorsLate = true}),
      config_(team.config()),
      onFault_(std::move(onFault)),
      links_(team.plane(), team.registry(), team.infos(), config_.connectTimeout),
      shape_(layoutOf(team.infos(), config_.channels, config_.deviceSlotBytes)),
      device_(device::openDevice(config_.device)),
      promise_(*device_, shape_.blocks()),
      peers_(team.plane(), *device_, team.infos(), shape_, Deadline::in(config_.joinTimeout),
             site::wordAtHand(team.infos(), team.rank(), config_.topoFile)),
      site_(site::siteOf(team.infos(), peers_.words())),
      groupOf_(comm::groupsOf(team.infos(), config_.groupSize)),
      windows_(team.plane(), *device_, peers_, team.infos()),
      bridges_(links_, *device_, peers_.unreached(), shape_.allChannels(), Deadline::in(config_.connectTimeout)),
      programs_(team.rank(), config_, bridgedLayout(), groupOf_, site_.within, *device_),
      state_(device_->allocate(stateBytes(shape_))),
      words_(device_->allocatePinned(kProgressAt + DeviceRecord::wordsFor(shape_.channels) * sizeof(device::Progress))),
      arguments_(device_->allocatePinned(config_.deviceArgumentBytes)),
      order_(device_->newOrder()),
      streamed_(makeStreamed()),
      sent_(static_cast<size_t>(shape_.size)),
      received_(sent_),
      record_(team.recorder(), reinterpret_cast<device::Progress*>(words_->data + kProgressAt), shape_.channels) {
  writeState();
  attendant_ = startThread([this] { attend(); });
}

GpuExecutor::~GpuExecutor() { end(); }

void GpuExecutor::run(const comm::Call& call) { queue({nullptr, this, call, {}}); }

void GpuExecutor::queue(comm::PendingCall call) { launcher().launch({&call, 1}); }

std::shared_ptr<comm::Operation> GpuExecutor::newOperation() {
  auto made = std::make_shared<LaunchedOperation>(team(), device_, report());
  std::lock_guard lock(mutex_);
  operations_.push_back(made);
  return made;
}

// Needs the mutex. Soon after they have ended, so that none is taken for failed that had ended before.
void GpuExecutor::lookAtOperations() noexcept {
  std::erase_if(operations_, [](const auto& one) { return one.expired(); });
  for (const auto& one : operations_)
    if (const auto operation = one.lock()) operation->done();
}

void GpuExecutor::closeOperations() noexcept {
  std::lock_guard lock(mutex_);
  for (const auto& one : std::exchange(operations_, {}))
    if (const auto operation = one.lock()) operation->close();
}

void GpuExecutor::end() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(ending_, true)) return;
  }
  changed_.notify_all();
  attendant_.join();
  // Release: pairs with the kernels' look at it.
  std::atomic_ref(abortWord()).store(1, std::memory_order_release);
  try {
    while (streamed_ && !idle()) streamed_->letGo();
    drain();
  } catch (const Error&) {  // the GPU has failed: nothing runs there any more
  }
  closeOperations();
}

std::unique_ptr<DeviceStreamed> GpuExecutor::makeStreamed() {
  const DeviceEngines engines = enginesFor(team().infos());
  if (!engines.why.empty()) log::info("{}", engines.why);
  if (!engines.streams) return nullptr;
  if (!peers_.anyUnreached()) return std::make_unique<DeviceStreamed>(*device_, peers_, config_.operationTimeout);
  if (!engines.kernels)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}, but some of the GPUs do not reach each other's memory (TUTTI_DEBUG=info says which): "
                            "put the ranks of one GPU into one process, and leave TUTTI_ENGINE at auto",
                            engines.why));
  log::info("some of the GPUs do not reach each other's memory: kernels run all operations");
  return nullptr;
}

bool GpuExecutor::streams(const comm::Call& call) const noexcept {
  return streamed_ && (!shape_.kernels || onlyMoves(call.collective));
}

std::string GpuExecutor::foresee(const comm::Call& call) const {
  const bool streamed = streams(call);
  const plan::DeviceChoice choice = programs_.foresee(call, streamed);
  if (streamed) return fmt::format("{} in streams", nameOf(choice.algorithm));
  return fmt::format("{}, {}, {} channel{}", nameOf(choice.algorithm), nameOf(choice.protocol), choice.channels,
                     choice.channels == 1 ? "" : "s");
}

// Of what waits in streams there is one price only, that of copies.
comm::Explanation GpuExecutor::explain(const comm::Call& call) const {
  comm::Explanation explanation = streams(call) ? Executor::explain(call) : explainKernels(programs_.weigh(call));
  if (streams(call)) explanation.excluded = programs_.refusals(call);
  explanation.ways = ways();
  explanation.order = site_.text;
  return explanation;
}

// Those whose memory this GPU reads and writes, and those to whom slots go by links.
std::vector<comm::Explanation::Way> GpuExecutor::ways() const {
  const std::vector<int>& unreached = peers_.unreached();
  comm::Explanation::Way direct{"p2p", {}, true, 0, 0, "", {}};
  std::vector<comm::Explanation::Way> all;
  for (int peer = 0; peer < shape_.size; ++peer)
    if (peer != team().rank() && std::ranges::count(unreached, peer) == 0) direct.ranks.push_back(peer);
  if (!direct.ranks.empty()) all.push_back(std::move(direct));
  for (comm::Explanation::Way& way : comm::waysOf(team(), links_, config_.prices)) {
    std::erase_if(way.ranks, [&](int peer) { return std::ranges::count(unreached, peer) == 0; });
    if (way.ranks.empty()) continue;
    std::vector<std::string> why{"from GPU to GPU: " + peers_.whyUnreached(way.ranks.front())};
    std::ranges::move(way.notFaster, std::back_inserter(why));
    way.notFaster = std::move(why);
    all.push_back(std::move(way));
  }
  return all;
}

comm::Rows GpuExecutor::describe() const {
  comm::Rows rows{{"buffers", fmt::format("on GPUs, this rank's on cuda:{}", config_.device)}};
  if (shape_.size == 1) return rows;
  const std::vector<int>& unreached = peers_.unreached();
  const bool byDevices =
      std::ranges::all_of(unreached, [this](int peer) { return links_.transportTo(peer).ends_with(link::kOnGpu); });
  rows.emplace_back("GPU links", unreached.empty()
                                     ? "directly from memory to memory"
                                     : fmt::format("{} to {}; directly to others, if any",
                                                   byDevices ? "by the network's devices" : "through host memory",
                                                   control::nameRanks(unreached)));
  rows.emplace_back("ring order", site_.text);
  return rows;
}

comm::Stats GpuExecutor::stats() const {
  comm::Stats stats;
  stats.memoryBytes = links_.memoryBytes() + memoryBytes();
  stats.connectedPeers = static_cast<uint64_t>(shape_.size - 1);
  stats.operations = calls_.load(std::memory_order_relaxed);
  stats.directSlots = directSlots();
  stats.lastAlgorithm = nameOf(lastAlgorithm_.load(std::memory_order_relaxed));
  const std::string bridges = links_.transportNames();
  stats.lastTransports = !reachesSome() ? bridges : bridges.empty() ? "p2p" : "p2p," + bridges;
  return stats;
}

// Programs go by what every link can do and by the shortest slots of any, on every rank alike.
GpuLayout GpuExecutor::bridgedLayout() const {
  GpuLayout shape = shape_;
  shape.bridged = peers_.anyUnreached();
  shape.linesMoveWhole = peers_.linesMoveWhole();
  const link::Edge bridge;
  uint32_t& plain = shape.slotBytes[Protocol::kSimple];
  if (shape.bridged) plain = std::min(plain, bridge.slotBytes);
  shape.depth = std::min(shape.depth, bridge.depth);
  shape.links = linksOf(site_, groupOf_, shape.bridged);
  return shape;
}

// A bridge knows Simple alone; the other protocols are not used then.
device::End GpuExecutor::endOf(bool sends, Protocol protocol, uint32_t channel, int peer) const {
  if (std::ranges::count(peers_.unreached(), peer) == 0)
    return sends ? peers_.sendEnd(protocol, channel, peer) : peers_.recvEnd(protocol, channel, peer);
  if (protocol != Protocol::kSimple) return {};
  return sends ? bridges_.sendEnd(channel, peer) : bridges_.recvEnd(channel, peer);
}

uint32_t& GpuExecutor::abortWord() const noexcept { return *reinterpret_cast<uint32_t*>(words_->data + kAbortAt); }

void GpuExecutor::writeState() {
  new (words_->data) device::Report;
  seat_.size = shape_.size;
  seat_.channels = shape_.allChannels();
  std::vector<device::End> ends(2 * endsOf(shape_));
  for (int p = 0; p < kProtocols; ++p)
    for (uint32_t channel = 0; channel < seat_.channels; ++channel)
      for (int peer = 0; peer < shape_.size; ++peer) {
        const size_t at = seat_.endIndex(static_cast<Protocol>(p), channel, peer);
        ends[at] = endOf(true, static_cast<Protocol>(p), channel, peer);
        ends[endsOf(shape_) + at] = endOf(false, static_cast<Protocol>(p), channel, peer);
      }
  device_->copy(state_->data, ends.data(), ends.size() * sizeof(device::End));
  seat_.sendEnds = reinterpret_cast<device::End*>(state_->data);
  seat_.recvEnds = seat_.sendEnds + endsOf(shape_);
  barrierByte_ = reinterpret_cast<std::byte*>(seat_.recvEnds + endsOf(shape_));
  seat_.reporting = reinterpret_cast<uint32_t*>(barrierByte_ + kBarrierBytes);
  seat_.operations = seat_.reporting + 1;
  seat_.directSlots = seat_.operations + countersOf(shape_);
  seat_.windows = windows_.table();
  seat_.abort = &abortWord();
  seat_.report = &report();
  seat_.llFlagMask = config_.llFlagMask;
  seat_.deadlineNs = static_cast<uint64_t>(config_.operationTimeout / std::chrono::nanoseconds(1));
}

// Arguments stay where a kernel may still read them. Those of eager calls go round: the first of a group begins at the
// front again, once all that was launched has ended, when less than half of the memory is left. Within a group nothing
// is used again: what is prepared and not launched yet, no wait would cover. Those of graphs, which may be replayed at
// any time, stay as long as the communicator.
std::byte* GpuExecutor::placeArguments(const void* data, size_t bytes, bool stays) {
  const size_t whole = (bytes + 15) / 16 * 16;
  const size_t room = arguments_->bytes - argumentsKept_;
  if (!std::exchange(groupHasArguments_, true) && argumentsUsed_ > room / 2) {
    drain();
    argumentsUsed_ = 0;
  }
  if (argumentsUsed_ + whole > room)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("the arguments of one group of calls on {} GPUs, and those that CUDA graphs keep, fill the "
                            "{} bytes there are for them: make smaller groups",
                            shape_.size, arguments_->bytes));
  const size_t at = stays ? room - whole : argumentsUsed_;
  (stays ? argumentsKept_ : argumentsUsed_) += whole;
  std::memcpy(arguments_->data + at, data, bytes);
  return arguments_->data + at;
}

const device::KernelWork* GpuExecutor::placeWorks(std::span<const device::KernelWork> works, bool stays) {
  return reinterpret_cast<const device::KernelWork*>(placeArguments(works.data(), works.size_bytes(), stays));
}

const size_t* GpuExecutor::placeTable(const std::vector<size_t>& table, bool stays) {
  if (table.empty()) return nullptr;
  return reinterpret_cast<const size_t*>(placeArguments(table.data(), table.size() * sizeof(size_t), stays));
}

void GpuExecutor::placeTables(const comm::Call& call, kernels::Layout& layout, bool stays) {
  if (!call.tables) return;
  layout.inputCounts = placeTable(call.tables->inputCounts, stays);
  layout.inputOffsets = placeTable(call.tables->inputOffsets, stays);
  layout.outputCounts = placeTable(call.tables->outputCounts, stays);
  layout.outputOffsets = placeTable(call.tables->outputOffsets, stays);
}

// What peers may use in place: registered buffers, and where input and output are the same memory only if the schedule
// is right then. Offsets of tables are this rank's own, so nobody else can know where to write.
void GpuExecutor::openBuffers(const comm::Call& call, const DeviceProgram& program, device::KernelWork& work,
                              bool stays) {
  if (windows_.empty()) return;
  const size_t size = sizeOf(call.type);
  const auto own = static_cast<uint32_t>(team().rank());
  const comm::Range input{call.send, work.layout.inputExtent(own) * size},
      output{call.recv, work.layout.outputExtent(own) * size};
  if (input.overlaps(output) && !program.schedule.directInPlace) return;
  work.peerReadable = windows_.share(input, stays);
  if (!call.tables) work.peerWritable = windows_.share(output, stays);
}

uint64_t GpuExecutor::directSlots() const {
  std::vector<uint32_t> counts(countersOf(shape_));
  device_->copy(counts.data(), seat_.directSlots, counts.size() * sizeof(uint32_t));
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

void GpuExecutor::beginGroup() {
  groupHasArguments_ = false;
  std::lock_guard lock(mutex_);
  record_.beginGroup();
}

device::KernelWork GpuExecutor::workFor(const comm::Call& call, const DeviceProgram& program, bool stays) {
  const engine::LaneWork plain = toWork(call, 0, program.schedule, program.chunkBytes, 0, program.channels);
  device::KernelWork work;
  work.seat = seat_;
  work.program = program.program;
  work.input = plain.input;
  work.output = plain.output;
  work.layout = plain.layout;
  work.arithmetic = plain.arithmetic;
  work.factorAt = call.factorAt;
  work.fingerprint = plain.fingerprint;
  work.protocol = program.protocol;
  work.scalesInput = plain.scalesInput;
  if (program.protocol == Protocol::kSimple) openBuffers(call, program, work, stays);
  placeTables(call, work.layout, stays);
  {
    std::lock_guard lock(mutex_);
    work.seat.progress = record_.place(stays);
  }
  if (call.collective == Collective::kBarrier) work.input = work.output = barrierByte_;
  if (call.collective != Collective::kSendRecv) return work;
  const size_t pair = (call.sends ? 0 : static_cast<size_t>(shape_.size)) + static_cast<size_t>(call.root);
  const size_t counter = shape_.channels + pair * shape_.messageChannels;
  work.seat.firstChannel = shape_.channels;
  work.seat.operations += counter;
  work.seat.directSlots += counter;
  return work;
}

uint64_t GpuExecutor::nextNumber(const comm::Call& call) const noexcept {
  if (call.collective != Collective::kSendRecv) return collectives_;
  return (call.sends ? sent_ : received_)[static_cast<size_t>(call.root)];
}

void GpuExecutor::launched(const comm::Call& call, const DeviceProgram& program, const device::KernelWork& work) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t number = nextNumber(call);
  if (call.collective != Collective::kSendRecv) {
    ++collectives_;
    lastAlgorithm_.store(program.schedule.algorithm, std::memory_order_relaxed);
  } else {
    ++(call.sends ? sent_ : received_)[static_cast<size_t>(call.root)];
  }
  std::lock_guard lock(mutex_);
  record_.launched(call, number, comm::planned(call.fingerprint(number), program.schedule, work.layout.channels), work);
  changed_.notify_all();
}

// The recorder learns nothing of it but that the GPU has ended it, that a later call has begun, or that the stream
// stands still in it.
void GpuExecutor::launchedInStream(const comm::Call& call, const DeviceProgram& program) {
  launched(call, program, device::KernelWork());
}

void GpuExecutor::beginStreaming() {
  std::lock_guard lock(mutex_);
  streaming_ = true;
}

void GpuExecutor::endStreaming() noexcept {
  std::lock_guard lock(mutex_);
  streaming_ = false;
}

void GpuExecutor::note() {
  std::lock_guard lock(mutex_);
  record_.look();
}

// A kernel can not wake anybody: someone has to look.
void GpuExecutor::attend() {
  constexpr std::chrono::milliseconds kBusy(1), kIdle(20);
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (bridges_.needDriving())
      drive(lock);
    else
      changed_.wait_for(lock, record_.empty() ? kIdle : kBusy);
    const News news = tryToLook();
    lock.unlock();
    tell(news);
    lock.lock();
  }
}

// Without the mutex: whoever hears of it may end this communicator, or ask this object something.
void GpuExecutor::tell(const News& news) noexcept try {
  if (lie_) onFault_.lie(lie_->peer, lie_->what);
  lie_.reset();
  if (news.kernel) onFault_.kernel(*news.kernel);
  if (news.cutOff) onFault_.cutOff(news.cutOff->peer, news.cutOff->text);
  toldOfCut_ = toldOfCut_ || news.cutOff;
  if (news.looked) onFault_.standing(news.standing, bridges_.needDriving());
} catch (const std::exception& thrown) {  // no memory for the words: the kernels end all the same, and it is an end
  team().fail(errorOf(thrown));
  std::atomic_ref(abortWord()).store(1, std::memory_order_release);
}

// Moves data for a millisecond. A graph may be replayed without this library's knowing, so it goes on, at rest, when
// nothing runs.
void GpuExecutor::drive(std::unique_lock<std::mutex>& lock) {
  const bool busy = !record_.empty();
  lock.unlock();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  while (std::chrono::steady_clock::now() < until)
    if (!bridges_.drive()) bridges_.pause(busy);
  lock.lock();
}

// Needs the mutex. Once a communicator; nothing of a kernel that was told to stop.
std::optional<device::Report> GpuExecutor::lookAtKernels() {
  // Acquire: pairs with the kernel's release; the report is complete.
  if (told_ || std::atomic_ref(report().ready).load(std::memory_order_acquire) == 0) return std::nullopt;
  told_ = true;
  if (report().fault == device::Fault::kAborted) return std::nullopt;
  return report();
}

// Nobody but the host can end the waits of a stream: it makes come what they are for. Needs the mutex.
std::optional<device::Report> GpuExecutor::lookAtStream(bool stopping) {
  try {
    if (stopping) {
      letGo_ = letGo_ || !streamed_->atRest();
      streamed_->letGo();
      return std::nullopt;
    }
    const auto report = streamed_->look();
    told_ = told_ || report;
    return report;
  } catch (const Error& error) {  // the GPU has failed; whoever waits for the stream is told by CUDA
    log::debug("{}", error.what());
    return std::nullopt;
  }
}

// Needs the mutex. What there is no memory for, the next look finds.
GpuExecutor::News GpuExecutor::tryToLook() noexcept {
  try {
    return look();
  } catch (const std::exception& error) {
    log::warn("what runs on the GPU could not be looked at: {}", error.what());
    return {};
  }
}

// Needs the mutex.
GpuExecutor::News GpuExecutor::look() {
  lookAtOperations();
  // Release: pairs with the kernels' look at it.
  if (team().plane().failed().load(std::memory_order_acquire))
    std::atomic_ref(abortWord()).store(1, std::memory_order_release);
  News news;
  news.kernel = lookAtKernels();
  if (streamed_)
    if (const auto report = lookAtStream(told_ || team().plane().failed().load(std::memory_order_acquire)))
      news.kernel = report;
  if (!toldOfCut_ && bridges_.failure() && !record_.empty()) news.cutOff = bridges_.failure();
  if (auto lie = windows_.look(record_.empty())) lie_ = std::move(lie);
  news.looked = !record_.empty();
  if (!news.looked) return news;
  if (streamed_) record_.noteStream(streamed_->standing());
  if (!streaming_ && device_->finished(*order_))
    record_.endAll(told_ || letGo_);
  else
    record_.look();
  news.standing = record_.standing();
  return news;
}

}  // namespace tutti::gpu
