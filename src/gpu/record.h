// The recorder's lines of calls on a GPU. A kernel can not write them; it writes words in host memory that say how far
// each of its channels is (device::Progress), and here these are read now and then.
//
// Every call has a row of words of its own, a word a channel, since a number of the kernel's tells no call from a
// replay of a graph in between. Rows go round. A call that finds none free (128 are under way before it), and one that
// a graph keeps, has no words: nothing is known of it but that later calls have begun, or that the GPU has ended all.
// Nor has a call that waits in a stream, of which whoever looks at the stream tells when it stands still.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>

#include "base/ticks.h"
#include "device/program.h"
#include "gpu/streamed.h"
#include "team/recorder.h"

namespace tutti::gpu {

// A call whose kernel or stream waits for a rank.
struct StandingCall {
  comm::Recorder::Token token;
  comm::Call call;
  uint64_t number;
  int waitingFor;
  uint64_t position;  // changes when it goes on
};

// Not for several threads: whoever has it sees to that.
class DeviceRecord {
 public:
  // `words`: wordsFor(channels) of them, where a kernel can write; `channels`: the most that a call has.
  DeviceRecord(comm::Recorder& recorder, device::Progress* words, uint32_t channels);
  static size_t wordsFor(uint32_t channels) noexcept { return kRows * size_t{channels}; }

  // Rows of calls that were prepared and never launched are free from here on.
  void beginGroup() noexcept { group_ = next_; }
  // The words for a call that is being prepared; null: there are none for it. `stays`: a graph keeps it.
  device::Progress* place(bool stays) noexcept;
  // `work` has been queued, with the words that it got.
  void launched(const comm::Call& call, uint64_t number, const link::Fingerprint& planned,
                const device::KernelWork& work);
  bool empty() const noexcept { return running_.empty(); }

  // Where the stream stands now, if it does. look() takes it in.
  void noteStream(const std::optional<StandingStream>& stream) noexcept;
  // Brings the lines up to date. Cheap: a few cache lines for each call under way.
  void look() noexcept;
  // The oldest that waited for a rank when last looked at.
  std::optional<StandingCall> standing() const;
  // The GPU has ended all of them. `failed`: those whose words say nothing else have failed.
  void endAll(bool failed) noexcept;

 private:
  static constexpr uint64_t kRows = 128;
  struct Running {
    comm::Recorder::Token token;
    comm::Call call;
    uint64_t number;
    std::optional<uint64_t> row;
    uint32_t channels, lag;
    uint64_t since;                    // when it was launched, in ticks
    uint64_t position = ~uint64_t{0};  // when last looked at
    int waitingFor = -1;
    bool begun = false, ended = false;
  };
  struct Sum;
  device::Progress* wordsOf(uint64_t row) const noexcept { return words_ + row % kRows * channels_; }
  Sum sumOf(const Running& call) const noexcept;
  static bool isIn(const Running& call, const StandingStream& stream) noexcept;
  void note(Running& call) noexcept;
  void endOvertaken() noexcept;
  void end(Running& call, comm::CallState how) noexcept;

  comm::Recorder& recorder_;
  device::Progress* words_;
  uint32_t channels_;
  uint64_t next_ = 0, group_ = 0;  // rows are numbered on and on
  std::deque<Running> running_;    // in the order of their launches
};

}  // namespace tutti::gpu
