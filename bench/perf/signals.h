// The signals that the programs care for. The library's own threads hold all of them back, whatever the mask of the
// thread that calls it.
#pragma once
#include <csignal>
#include <string>

namespace tutti::perf {

// Holds signals back for as long as it lives.
class HeldSignals {
 public:
  // Those that a launcher answers: the end of a child, what it forwards to the ranks, what ends it.
  HeldSignals();
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  const sigset_t& all() const { return held_; }

 private:
  sigset_t held_, before_;
};

// SIGUSR2 asks a rank for the record of its calls. With TUTTI_DUMP_DIR the library answers it, from the moment when the
// first communicator is there; without, a line says what to set. The first call is for the beginning, the second for
// when the ranks have joined: in between the signal waits, and at no time does it end the program.
void holdRecordSignal();
void admitRecordSignal();
// The mask with which the process of a rank begins.
sigset_t recordSignalAlone();

// An unfinished file, one at a time, that SIGINT, SIGTERM and SIGHUP remove before they end the process; and its end.
void removeOnSignal(const std::string& path);
void keepOnSignal(const std::string& path);

}  // namespace tutti::perf
