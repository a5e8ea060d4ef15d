// The memory that hostile peers share with a GPU, as kernels read it: their own source, a block of the emulated GPU
// that runs on this thread. Between any two looks of the kernel at memory that peers can write they may have changed
// it: headers, payloads and flags of slots, counters of released ones, and where they say that their buffers are.
// Nothing is read or written but the caller's buffers, the links, and what the very peer has shared; a kernel that
// stops says why, and what it says is what it saw; one that ends has taken every slot of its own call.
#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "emulation/device/block.h"
#include "fuzz/input.h"
#include "kernels/cuda/collective.h"
#include "kernels/cuda/kernel_table.h"
#include "schedule/algorithm.h"
#include "support/sanitized.h"
#include "team/call.h"

namespace tutti::fuzz {
namespace {

using device::Direct;
using device::Fault;

constexpr uint32_t kSlotBytes = 4096, kMostTurns = 30'000;
constexpr size_t kWindowBytes = 1 << 14;
constexpr uint16_t kOwnWindow = 9;

// Memory of its own, zeroed, so that a sanitizer sees where it ends.
class Region {
 public:
  explicit Region(size_t bytes) : data_(new (kAlignment) std::byte[bytes]{}), size_(bytes) {}
  std::byte* data() const noexcept { return data_.get(); }
  size_t size() const noexcept { return size_; }
  uint64_t address() const noexcept { return reinterpret_cast<uint64_t>(data()); }

 private:
  static constexpr std::align_val_t kAlignment{128};
  struct Delete {
    void operator()(std::byte* data) const noexcept { ::operator delete[](data, kAlignment); }
  };
  std::unique_ptr<std::byte[], Delete> data_;
  size_t size_;
};

// Whoever touches it is ended.
uint64_t forbidden() {
  static void* const page = ::mmap(nullptr, kWindowBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(page != MAP_FAILED);
  return reinterpret_cast<uint64_t>(page);
}

struct Plan {
  comm::Call call;
  Protocol protocol = Protocol::kSimple;
  schedule::Schedule schedule;
  uint32_t depth = 2;
};

// A rank sends itself what it expects of itself: the API sees to that.
void countEach(comm::Call& call, int self, int size, Input& in) {
  auto tables = std::make_shared<comm::Tables>();
  size_t input = 0, output = 0;
  for (int rank = 0; rank < size; ++rank) {
    tables->inputCounts.push_back(in.take<uint8_t>());
    tables->outputCounts.push_back(rank == self ? tables->inputCounts.back() : in.take<uint8_t>());
    tables->inputOffsets.push_back(input);
    tables->outputOffsets.push_back(output);
    input += tables->inputCounts.back();
    output += tables->outputCounts.back();
  }
  call.tables = std::move(tables);
}

Plan planFrom(Input& in) {
  constexpr Collective kSome[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                  Collective::kBroadcast, Collective::kReduce,    Collective::kAllToAll,
                                  Collective::kAllToAllV};
  constexpr size_t kCounts[] = {1, 5, 64, 300, 1500, 0};
  Plan plan;
  plan.call.collective = kSome[in.take<uint8_t>() % std::size(kSome)];
  plan.call.type = DataType::kFloat32;
  plan.call.count = kCounts[in.take<uint8_t>() % std::size(kCounts)];
  plan.protocol = static_cast<Protocol>(in.take<uint8_t>() % kProtocols);
  const auto has = schedule::algorithmsFor(plan.call.collective);
  const auto algorithm = has[in.take<uint8_t>() % has.size()];
  schedule::Shape shape;
  shape.collective = plan.call.collective;
  shape.size = 2 + in.take<uint8_t>() % 3;
  plan.schedule = schedule::build(algorithm, shape, in.take<uint8_t>() % shape.size);
  plan.depth = std::bit_ceil<uint32_t>(std::max<uint32_t>(plan.schedule.depth, 2));
  if (plan.call.collective == Collective::kAllToAllV) countEach(plan.call, plan.schedule.rank, shape.size, in);
  return plan;
}

// One direction of a link.
struct Link {
  Link(uint32_t depth, uint64_t passed)
      : memory(link::Fifo::bytesFor(kSlotBytes, depth)), fifo(link::Fifo::over(memory.data(), kSlotBytes, depth)) {
    end.fifo = fifo;
    end.passed = next = passed;
    fifo.released->value = passed;
  }
  link::SlotHeader& header(uint64_t slot) { return fifo.headers[slot & (fifo.depth - 1)]; }

  Region memory;
  link::Fifo fifo;
  device::End end;
  int peer = -1;
  uint64_t next = 0;              // that the peer posts
  std::vector<uint32_t> lengths;  // of the slots that are to come
  size_t sent = 0;
  bool wrong = false;  // the last slot is of another call, or of another length, and has been from the beginning
};

class Job {
 public:
  explicit Job(Input& in) : in_(in), plan_(planFrom(in)), size_(plan_.schedule.size) {
    constexpr uint64_t kPassed[] = {0, 7, (uint64_t{1} << 32) - 3};
    passed_ = kPassed[in.take<uint8_t>() % std::size(kPassed)];
    const auto how = in.take<uint8_t>();
    goesOn_ = how % 2 == 0;
    pace_ = 1 + how / 2 % 32;
    setWork();
    setLinks(in.take<uint8_t>());
    setProgram();
  }

  void run() {
    const device::KernelLaunch launch = [&] {
      device::KernelLaunch made;
      made.count = 1;
      made.works[0] = work_;
      return made;
    }();
    emulation::Launch kernel;
    const cuda::Kernel chosen = kernelFor();
    kernel.kernel = reinterpret_cast<const void*>(chosen);
    kernel.block = dim3(cuda::threadsPerBlock());
    kernel.body = [&] { chosen(launch); };
    emulation::Failure failure;
    const emulation::Grid grid{kernel, failure, 1, [this] { meanwhile(); }};
    emulation::Block(grid, {0, 0, 0}).run();
    require(!failure.happened());
    judge();
  }

 private:
  cuda::Kernel kernelFor() const {
    const cuda::HotKernels& kernels = cuda::hotKernelsOf(plan_.protocol);
    return reduces(plan_.call.collective) ? kernels.sumOf(plan_.call.type) : kernels.move;
  }

  void setWork() {
    setBuffers();
    plan_.call.send = input_->data();
    plan_.call.recv = output_->data();
    const uint32_t chunk = device::chunkBytes(plan_.protocol, kSlotBytes, plan_.schedule.maxSpan);
    const engine::LaneWork plain = comm::toWork(plan_.call, kNumber, plan_.schedule, chunk, 0, 1);
    work_.input = plain.input;
    work_.output = output_->data();
    work_.layout = plain.layout;
    work_.arithmetic = plain.arithmetic;
    work_.fingerprint = right_ = plain.fingerprint;
    work_.protocol = plan_.protocol;
    device::DeviceComm& seat = work_.seat;
    seat.size = size_;
    seat.operations = &operations_;
    seat.directSlots = &directSlots_;
    seat.reporting = &reporting_;
    seat.abort = &abort_;
    seat.report = &report_;
    seat.progress = &progress_;
  }

  void setBuffers() {
    const Collective kind = plan_.call.collective;
    const bool gathers = kind == Collective::kAllGather, scatters = kind == Collective::kReduceScatter;
    const bool perRank = plan_.schedule.map == schedule::SegmentMap::kPerRank;
    const size_t one = plan_.call.count, all = perRank ? one * static_cast<size_t>(size_) : one;
    size_t input = gathers ? one : all, output = scatters ? one : all;
    if (const auto& tables = plan_.call.tables) {
      input = tables->inputOffsets.back() + tables->inputCounts.back();
      output = tables->outputOffsets.back() + tables->outputCounts.back();
    }
    input_ = std::make_unique<Region>(input * sizeof(float));
    output_ = std::make_unique<Region>(output * sizeof(float));
  }

  // `direct`: a bit for each rank that maps buffers and whose buffer is mapped here.
  void setLinks(uint8_t direct) {
    ends_.resize(2 * static_cast<size_t>(kProtocols) * static_cast<size_t>(size_));
    windows_.resize(static_cast<size_t>(size_) * device::kWindows);
    work_.seat.recvEnds = ends_.data();
    work_.seat.sendEnds = ends_.data() + ends_.size() / 2;
    work_.seat.windows = windows_.data();
    for (int rank = 0; rank < size_; ++rank) {
      const bool shares = (direct >> rank & 1) != 0;
      auto& memory = shared_.emplace_back(shares ? std::make_unique<Region>(kWindowBytes) : nullptr);
      windows_[windowOf(rank)] = {shares ? memory->address() : forbidden(), kWindowBytes};
    }
    if ((direct & 0x10) != 0) work_.peerReadable = {0, kOwnWindow, false};
    if ((direct & 0x20) != 0) work_.peerWritable = {64, kOwnWindow, false};
    for (const int peer : plan_.schedule.inPeers) place(ins_, work_.seat.recvEnds, peer, direct);
    for (const int peer : plan_.schedule.outPeers) place(outs_, work_.seat.sendEnds, peer, direct);
    foresee();
  }
  static uint16_t numberOf(int rank) { return static_cast<uint16_t>(1 + rank); }
  static size_t windowOf(int rank) { return static_cast<size_t>(rank) * device::kWindows + numberOf(rank); }

  void place(std::vector<std::unique_ptr<Link>>& links, device::End* ends, int peer, uint8_t direct) {
    Link& made = *links.emplace_back(std::make_unique<Link>(plan_.depth, passed_));
    made.peer = peer;
    made.end.direct = (direct >> peer & 1) != 0 ? Direct::kMapped : Direct::kNever;
    ends[work_.seat.endIndex(plan_.protocol, 0, peer)] = made.end;
  }

  // The lengths of all slots that are to come, as the kernel reckons them.
  void foresee() {
    const auto& schedule = plan_.schedule;
    const size_t rounds = work_.layout.rounds();
    for (size_t iteration = 0; rounds != 0 && iteration < rounds + schedule.maxLag; ++iteration)
      for (const schedule::Step& step : schedule.steps) {
        const size_t round = iteration - step.lag;
        if (round >= rounds) continue;
        const uint32_t bytes = lengthOf(step, round);
        if (bytes == 0 && !work_.layout.speaks) continue;
        for (const schedule::Operand operand : schedule.from(step))
          if (operand.isLink()) ins_[static_cast<size_t>(operand.index())]->lengths.push_back(bytes);
      }
  }
  uint32_t lengthOf(const schedule::Step& step, size_t round) const {
    const Grain grain = rowOf(plan_.protocol).grain;
    bool byInput = false;
    for (const schedule::Operand operand : plan_.schedule.from(step))
      byInput = byInput || (work_.layout.inputCounts != nullptr && operand.kind() == schedule::Operand::Kind::kInput);
    uint32_t segment = step.segment, grains = 0, filled = 0;
    for (uint32_t i = 0; i < step.span; ++i) {
      const auto bytes = static_cast<uint32_t>(work_.layout.piece(segment, round, byInput).count * sizeof(float));
      if (++segment == work_.layout.segments) segment = 0;
      if (bytes == 0) continue;
      filled = grains * grain.payload + bytes;
      grains += (bytes + grain.payload - 1) / grain.payload;
    }
    return filled;
  }

  void setProgram() {
    const auto& schedule = plan_.schedule;
    device::Program& program = work_.program;
    program.steps = schedule.steps.data();
    program.operands = schedule.operands.data();
    program.inPeers = schedule.inPeers.data();
    program.outPeers = schedule.outPeers.data();
    program.stepCount = static_cast<uint32_t>(schedule.steps.size());
    program.inCount = static_cast<uint16_t>(schedule.inPeers.size());
    program.outCount = static_cast<uint16_t>(schedule.outPeers.size());
    program.scratches = schedule.scratches;
    program.scratchBytes = kSlotBytes;
    program.maxLag = schedule.maxLag;
    scratch_ = std::make_unique<Region>(std::max<size_t>(1, schedule.scratches) * kSlotBytes);
    program.scratch = scratch_->data();
  }

  // --- what the peers do while the kernel runs ---

  void meanwhile() {
    if (++turns_ % pace_ != 0) return;
    if (turns_ > kMostTurns) abort_ = 1;
    if (!in_.empty()) return interfere();
    if (!goesOn_) abort_ = 1;
    for (const auto& one : ins_) post(*one);
    for (const auto& one : outs_) release(*one);
  }

  void interfere() {
    const auto what = in_.take<uint8_t>();
    const size_t which = what / 16;
    Link* const in = ins_.empty() ? nullptr : ins_[which % ins_.size()].get();
    Link* const out = outs_.empty() ? nullptr : outs_[which % outs_.size()].get();
    switch (what % 16) {
      case 0:
      case 1:
        return in == nullptr ? void() : post(*in);
      case 2:
        return in == nullptr ? void() : postInOutput(*in);
      case 3:
        return in == nullptr ? void() : postInPlace(*in);
      case 4:
      case 5:
      case 6:
        return out == nullptr ? void() : release(*out);
      case 7:
        return in == nullptr ? void() : change(*in);
      case 8:
        return out == nullptr ? void() : change(*out);
      case 9:
        return in == nullptr ? void() : postWrong(*in);
      case 10:
        return in == nullptr ? void() : lieInHeader(*in);
      case 11:
      case 12:
        return in == nullptr ? void() : pointAnywhere(*in);
      case 13:
        return out == nullptr ? void() : openAnywhere(*out);
      case 14:
        return out == nullptr ? void() : out->fifo.released->value.store(in_.take<uint64_t>());
      default:
        abort_ = what == 0xff ? 1 : abort_;
    }
  }

  // As it should be.
  void post(Link& link) {
    if (link.sent == link.lengths.size() || link.next - link.fifo.released->value.load() >= link.fifo.depth) return;
    link::SlotHeader& header = link.header(link.next);
    header.fingerprint = right_;
    header.fingerprint.operation = kNumber;
    header.bytes = link.lengths[link.sent++];
    header.carried = link::PayloadLocation::kInSlot;
    if (plan_.protocol != Protocol::kSimple) flag(link);
    header.sequence.store(++link.next);
  }
  void postWrong(Link& link) {
    const size_t before = link.sent;
    post(link);
    if (link.sent == before) return;
    link::SlotHeader& header = link.header(link.next - 1);
    const auto bit = in_.take<uint8_t>() % 160;
    auto words = header.fingerprint.words();
    if (bit < 128) words[bit / 64] ^= uint64_t{1} << bit % 64;
    if (bit >= 128) header.bytes ^= 1U << bit % 32;
    header.fingerprint = std::bit_cast<link::Fingerprint>(words);
    link.wrong = true;
  }
  void postInPlace(Link& link) {
    post(link);
    pointAnywhere(link);
  }
  void postInOutput(Link& link) {
    post(link);
    link.header(link.next - 1).carried = link::PayloadLocation::kAtReceiver;
  }
  // Every line of the slot has come.
  void flag(Link& link) {
    std::byte* const slot = link.fifo.slots + (link.next & (link.fifo.depth - 1)) * size_t{kSlotBytes};
    const uint64_t number = link.next + 1;
    const auto low = static_cast<uint32_t>(number);
    for (size_t at = 0; at < kSlotBytes; at += 16) {
      if (plan_.protocol == Protocol::kLL) {
        std::memcpy(slot + at + 4, &low, sizeof low);
        std::memcpy(slot + at + 12, &low, sizeof low);
      } else if (at % 128 == 112) {
        std::memcpy(slot + at + 8, &number, sizeof number);
      }
    }
  }
  static void release(Link& link) {
    uint64_t posted = link.fifo.released->value.load();
    while (link.header(posted).sequence.load() == posted + 1) ++posted;
    link.fifo.released->value.store(posted);
  }

  void change(Link& link) {
    link.wrong = false;
    const auto place = in_.take<uint16_t>();
    link.memory.data()[place % link.memory.size()] ^= std::byte{in_.take<uint8_t>()};
  }
  void lieInHeader(Link& link) {
    link.wrong = false;
    link::SlotHeader& header = link.header(link.next - in_.take<uint8_t>() % 2);
    const auto how = in_.take<uint8_t>();
    if (how % 4 == 0) header.bytes = in_.take<uint32_t>();
    if (how % 4 == 1) header.fingerprint = in_.take<link::Fingerprint>();
    if (how % 4 == 2) header.carried = static_cast<link::PayloadLocation>(in_.take<uint8_t>() % 4);
    if (how % 4 == 3) header.sequence.store(link.next + how / 4 % 4);
  }
  // Mostly within a window, and mostly the right one.
  link::RemoteAddress spotFrom(int peer) {
    const auto how = in_.take<uint8_t>();
    const uint64_t at = how % 4 == 3 ? in_.take<uint64_t>() : in_.take<uint16_t>();
    const uint64_t window = how / 4 % 4 == 3 ? in_.take<uint16_t>() : numberOf(how / 4 % 4 == 2 ? how / 16 : peer);
    return {how % 8 == 0 ? at / 16 * 16 : at, window};
  }
  void pointAnywhere(Link& link) {
    link::SlotHeader& header = link.header(link.next - in_.take<uint8_t>() % 2);
    const link::RemoteAddress spot = spotFrom(link.peer);
    std::memcpy(header.inlined, &spot, sizeof spot);
    header.carried = link::PayloadLocation::kAtSender;
  }
  void openAnywhere(Link& link) {
    link.fifo.released->output = spotFrom(link.peer);
    link.fifo.released->outputOf = kNumber + 1;
  }

  // --- what must hold at the end ---

  void judge() const {
    require((report_.ready != 0) == (report_.fault != Fault::kNone));
    if (report_.ready == 0) return judgeEnd();
    require(report_.peer >= 0 && report_.peer < size_ && report_.peer != plan_.schedule.rank);
    link::Fingerprint mine = right_;
    mine.operation = kNumber;
    require(report_.mine == mine);
    switch (report_.fault) {
      case Fault::kMismatch:
        return require(report_.theirs != mine);
      case Fault::kBytes:
        return require(report_.theirs == mine && report_.bytes != report_.expected);
      case Fault::kAborted:
        return require(abort_ != 0);
      case Fault::kSpot:
      case Fault::kNotWritable:
        return require(plan_.protocol == Protocol::kSimple);
      default:
        require(false);  // there is no deadline
    }
  }
  void judgeEnd() const {
    require(progress_.ended == kNumber + 1 && operations_ == kNumber + 1);
    for (const auto& link : ins_) {
      const device::End& end = work_.seat.recvEnds[work_.seat.endIndex(plan_.protocol, 0, link->peer)];
      require(end.passed == passed_ + link->lengths.size() && !link->wrong);
    }
  }

  static constexpr uint32_t kNumber = 5;  // of the operation

  Input& in_;
  Plan plan_;
  int size_;
  uint64_t passed_ = 0;
  bool goesOn_ = false;  // when the input has ended: the peers do what they should, else the call is aborted
  uint32_t pace_ = 1, turns_ = 0;
  device::KernelWork work_;
  link::Fingerprint right_;
  std::unique_ptr<Region> input_, output_, scratch_;
  std::vector<device::End> ends_;
  std::vector<device::MappedWindow> windows_;
  std::vector<std::unique_ptr<Region>> shared_;
  std::vector<std::unique_ptr<Link>> ins_, outs_;
  device::Report report_;
  device::Progress progress_;
  uint32_t operations_ = kNumber, reporting_ = 0, directSlots_ = 0, abort_ = 0;
};

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (tutti::kThreadSanitized) return 0;  // memory that a peer changes is a race by its nature
  tutti::fuzz::Input in(data, size);
  tutti::fuzz::Job(in).run();
  return 0;
}
