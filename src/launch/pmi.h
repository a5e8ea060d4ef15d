// The line protocol (PMI-1) that MPI process managers speak on the descriptor PMI_FD: Hydra (MPICH, Intel MPI,
// MVAPICH2), Slurm's pmi2 plugin, Flux, PALS. Each request is a line, "cmd=put kvsname=... key=... value=...", and is
// answered by one. Source: MPICH, src/pmi/doc of version 4 (the wire protocol of PMI version 1).
#pragma once
#include <map>
#include <string>

#include "launch/bounded_wait.h"

namespace tutti::control::pmi {

// A key-value space that the ranks of a job share. An MPI library may speak on the same descriptor before and after,
// but not at the same time on another thread. A process that has once spoken must say goodbye, or the manager takes its
// end for a crash and ends the job; an MPI library that comes later still needs the descriptor: so this is done when
// the process exits.
class Client {
 public:
  // All throw Error: kTimeout, or kRemote when the process manager refuses or says what cannot be understood, and when
  // the caller has lost interest.
  Client(int fd, BoundedWait patience);
  void put(const std::string& key, const std::string& value);
  std::string get(const std::string& key);
  void barrier();  // waits for all ranks; what was put before it can be got after it

 private:
  using Fields = std::map<std::string, std::string>;
  Fields ask(const std::string& line, const std::string& wanted);
  void send(const std::string& line);
  std::string receive();
  void awaitReady(short events);

  int fd_;
  BoundedWait patience_;
  std::string space_, received_;
};

// A name for the process manager at the other end, the same for all ranks that it has started on this host; empty when
// the descriptor is no socket.
std::string ownerOf(int fd);

}  // namespace tutti::control::pmi
