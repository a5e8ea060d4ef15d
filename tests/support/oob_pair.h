// Two ends of a OobChannel within one process, for tests of transports and of their set-up. Thread-safe.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "link/transport.h"
#include "process/fd.h"
#include "support/interloper.h"

namespace tutti::test {

// A connected pair of TCP sockets over the loopback device. Throws Error.
std::pair<UniqueFd, UniqueFd> tcpPair();
std::pair<UniqueFd, UniqueFd> unixPair();

// What the two ends share. A test may look into it and break it.
class MeetingRoom {
 public:
  // From now on pollStream() throws for this kind.
  void refuse(link::StreamKind kind, std::string why);
  // From now on TCP streams come with keys, and with somebody between the ends.
  void seal(CipherKind kind);
  void intercept(Tamper tamper);
  size_t streamsMade() const;

 private:
  friend class MeetingEnd;
  struct Side {
    std::vector<Bytes> mail;  // for this side
    std::vector<link::StreamKind> requests;
    std::map<size_t, SecureSocket> streams;  // by the number of the request
  };
  // The n-th request of one side belongs to the n-th of the other, as over a control plane.
  void match(size_t request);
  std::pair<UniqueFd, UniqueFd> makeTcpPair();

  mutable std::mutex mutex_;
  std::array<Side, 2> sides_;
  std::map<link::StreamKind, std::string> refused_;
  size_t streamsMade_ = 0;
  std::optional<SessionKeys> keys_;  // of side 0
  std::optional<Tamper> tamper_;
  std::vector<std::unique_ptr<Interloper>> interlopers_;
};

class MeetingEnd : public link::OobChannel {
 public:
  MeetingEnd(std::shared_ptr<MeetingRoom> room, int side) : room_(std::move(room)), side_(side) {}
  void put(std::span<const std::byte> blob) override;
  std::optional<Bytes> poll() override;
  void requestStream(link::StreamKind kind) override;
  std::optional<SecureSocket> pollStream() override;

 private:
  std::shared_ptr<MeetingRoom> room_;
  int side_;
};

struct MeetingPair {
  std::shared_ptr<MeetingRoom> room = std::make_shared<MeetingRoom>();
  std::array<std::unique_ptr<link::OobChannel>, 2> ends{std::make_unique<MeetingEnd>(room, 0),
                                                        std::make_unique<MeetingEnd>(room, 1)};
};

}  // namespace tutti::test
