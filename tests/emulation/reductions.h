// Reductions of values of all kinds (any bits; NaNs, infinities, subnormals and zeros of both signs among them), to
// compare what engines make of them bit for bit.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <random>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "emulation/gpu_ranks.h"

namespace tutti::test {

struct ReductionJob {
  faults::Kind kind = faults::Kind::kAllReduce;  // or kReduceScatter, kReduce
  tuttiDataType_t type = tuttiFloat32;
  int op = tuttiSum;                  // or faults::kPreMulSum
  size_t count = 0;                   // of the result
  size_t sendSkew = 0, recvSkew = 0;  // bytes by which the buffers miss a multiple of 64
  bool inPlace = false;
  uint64_t salt = 0;

  std::string describe() const {
    const faults::Operation same{kind, type, op, count, 0, inPlace, salt};
    return same.describe() + ", buffers off by " + std::to_string(sendSkew) + " and " + std::to_string(recvSkew);
  }
};

constexpr const DataTypeRow& formatOf(tuttiDataType_t type) { return kDataTypeRows[std::max(rowOfNumber(type), 0)]; }

// An element of the type, in the low bytes; of half of those with a fraction, a special or a middling one.
inline uint64_t elementOfAnyKind(std::mt19937_64& random, tuttiDataType_t type) {
  const uint64_t bits = random();
  const DataTypeRow& format = formatOf(type);
  if (!format.isFloat()) return bits;
  const uint64_t exponents = ((uint64_t{1} << format.exponentBits) - 1) << format.mantissaBits;
  const uint64_t sign = uint64_t{1} << (format.exponentBits + format.mantissaBits);
  const uint64_t one = (exponents >> (format.mantissaBits + 1)) << format.mantissaBits;
  switch (random() % 16) {
    case 0:
      return bits & sign;  // zero
    case 1:
      return (bits & sign) | exponents;  // infinity, where there is one
    case 2:
      return bits | exponents;  // not a number, of any payload
    case 3:
      return bits & ~exponents;  // subnormal
    case 4:
    case 5:
    case 6:
    case 7:
      return (bits & ~exponents) | one;  // from 1 to 2
    default:
      return bits;
  }
}

// One rank's part of a job. It must live until the call is done.
class ReductionPart {
 public:
  ReductionPart(const ReductionJob& job, int rank, int ranks) : job_(job), width_(faults::sizeOf(job.type)) {
    std::mt19937_64 random(faults::mix(job.salt, static_cast<uint64_t>(rank)));
    const auto n = static_cast<size_t>(ranks), mine = static_cast<size_t>(rank);
    const bool scatters = job.kind == faults::Kind::kReduceScatter;
    const size_t sends = scatters ? n * job.count : job.count;
    send_.assign(2 * kMargin + sends * width_, kPoison);
    recv_.assign(2 * kMargin + job.count * width_, kPoison);
    for (size_t i = 0; i < sends; ++i) {
      const uint64_t element = elementOfAnyKind(random, job.type);
      std::memcpy(sendAt() + i * width_, &element, width_);
    }
    if (job.inPlace) within_ = scatters ? mine * job.count * width_ : 0;
    factor_ = random();
    if (const DataTypeRow& format = formatOf(job.type); format.isFloat())
      factor_ = (((uint64_t{1} << (format.exponentBits - 1)) - 1) << format.mantissaBits) |
                (factor_ & ((uint64_t{1} << format.mantissaBits) - 1));
  }

  void issue(tuttiComm_t comm, tuttiStream_t stream) {
    auto op = static_cast<tuttiRedOp_t>(job_.op);
    if (job_.op == faults::kPreMulSum)
      CHECK_TUTTI(tuttiRedOpCreatePreMulSum(&op, &factor_, job_.type, tuttiScalarHostImmediate, comm));
    void* const to = job_.inPlace ? sendAt() + within_ : recvAt();
    if (job_.kind == faults::Kind::kAllReduce)
      CHECK_TUTTI(tuttiAllReduce(sendAt(), to, job_.count, job_.type, op, comm, stream));
    else if (job_.kind == faults::Kind::kReduceScatter)
      CHECK_TUTTI(tuttiReduceScatter(sendAt(), to, job_.count, job_.type, op, comm, stream));
    else
      CHECK_TUTTI(tuttiReduce(sendAt(), to, job_.count, job_.type, op, 0, comm, stream));
    if (job_.op == faults::kPreMulSum) CHECK_TUTTI(tuttiRedOpDestroy(op, comm));
  }

  // The result, with what lies before and behind it where nobody may write.
  std::vector<std::byte> outcome() const {
    const size_t around = job_.inPlace ? 0 : kAround;
    const std::byte* const begin = job_.inPlace ? send_.data() + start(send_, job_.sendSkew) + within_
                                                : recv_.data() + start(recv_, job_.recvSkew);
    return {begin - around, begin + job_.count * width_ + around};
  }

 private:
  static constexpr size_t kAround = 64, kMargin = 128;  // bytes
  static constexpr std::byte kPoison{0xA5};
  static size_t start(const std::pmr::vector<std::byte>& memory, size_t skew) {
    return kAround + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 + skew;
  }
  std::byte* sendAt() { return send_.data() + start(send_, job_.sendSkew); }
  std::byte* recvAt() { return recv_.data() + start(recv_, job_.recvSkew); }

  const ReductionJob job_;
  size_t width_, within_ = 0;
  uint64_t factor_ = 0;
  std::pmr::vector<std::byte> send_, recv_;
};

using Outcomes = std::vector<std::vector<std::byte>>;  // rank after rank, of each all jobs

// Every job on the host: what ranks that are threads make of it by this algorithm.
inline Outcomes runOnHost(const std::vector<ReductionJob>& jobs, int ranks, const std::string& algorithm) {
  tuttiConfig_t config = testConfig();
  config.transports = "p2p";
  config.algorithm = algorithm.c_str();
  Outcomes outcomes(static_cast<size_t>(ranks) * jobs.size());
  withCommunicators(ranks, config, [&](tuttiComm_t comm, int rank) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      ReductionPart part(jobs[i], rank, ranks);
      part.issue(comm, nullptr);
      outcomes[static_cast<size_t>(rank) * jobs.size() + i] = part.outcome();
    }
  });
  return outcomes;
}

// The same on the GPU, one launch after the other without a wait between them.
inline Outcomes runOnGpu(const std::vector<ReductionJob>& jobs, const GpuRanks& gpu) {
  std::vector<std::unique_ptr<ReductionPart>> parts;
  for (int rank = 0; rank < gpu.size(); ++rank)
    for (const ReductionJob& job : jobs) parts.push_back(std::make_unique<ReductionPart>(job, rank, gpu.size()));
  for (size_t i = 0; i < jobs.size(); ++i) {
    inGroup([&] {
      for (int rank = 0; rank < gpu.size(); ++rank)
        parts[static_cast<size_t>(rank) * jobs.size() + i]->issue(gpu[rank], nullptr);
    });
  }
  gpu.finish();
  Outcomes outcomes;
  for (const auto& part : parts) outcomes.push_back(part->outcome());
  return outcomes;
}

// The number of the first element, from where the outcomes begin, in which they differ.
inline size_t firstOther(const std::vector<std::byte>& a, const std::vector<std::byte>& b, size_t width) {
  size_t at = 0;
  while (std::memcmp(&a[at], &b[at], width) == 0) at += width;
  return at / width;
}

// "float16 …, element 3: rank 0 has x, rank 1 has y": two outcomes that differ, in words.
inline std::string tell(const ReductionJob& job, const std::string& oneIs, const std::vector<std::byte>& one,
                        const std::string& otherIs, const std::vector<std::byte>& other) {
  const size_t width = faults::sizeOf(job.type), element = firstOther(one, other, width);
  const auto spell = [&](const std::vector<std::byte>& outcome) {
    return std::string(faults::spell(&outcome[element * width], job.type).text);
  };
  return fmt::format("{}, element {}{}: {} {}, {} {}", job.describe(), element,
                     job.inPlace ? "" : " counted from 64 bytes before the result", oneIs, spell(one), otherIs,
                     spell(other));
}

// The first job whose outcomes differ, in words; empty when all are the same.
inline std::string firstDifference(const std::vector<ReductionJob>& jobs, const Outcomes& host, const Outcomes& gpu) {
  for (size_t i = 0; i < host.size(); ++i)
    if (host[i] != gpu[i])
      return tell(jobs[i % jobs.size()], fmt::format("the host's engine makes for rank {}", i / jobs.size()), host[i],
                  "the GPU", gpu[i]);
  return "";
}

// The first all-reduce of which not every rank has the same bits, in words; empty when there is none.
inline std::string firstDisagreement(const std::vector<ReductionJob>& jobs, const Outcomes& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const size_t job = i % jobs.size();
    if (jobs[job].kind == faults::Kind::kAllReduce && outcomes[i] != outcomes[job])
      return tell(jobs[job], "rank 0 has", outcomes[job], fmt::format("rank {} has", i / jobs.size()), outcomes[i]);
  }
  return "";
}

}  // namespace tutti::test
