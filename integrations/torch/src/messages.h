// send, recv and recvAnysource, as PyTorch means them: matched by peer and tag, in any order beside collectives and
// each other.
//
// tutti's own messages match in the order of the calls, and the calls of a communicator take turns. So each direction
// between two ranks has a communicator of its own (a "way"), made when it is first used, with a thread at either end. A
// message is a header (tag, size) and what it carries. The receiving thread takes a header only while somebody waits
// for a message that may come this way, and then gives the message to the first receive that fits; one that nobody
// wants yet, but which stands before one that is wanted, is put aside. Where its receiver's callbacks begin operations
// or wait for one, another thread goes on receiving (turn.h).
#pragma once
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "alarm.h"
#include "communicator.h"
#include "numbers.h"
#include "queue.h"

namespace tutti_torch {

constexpr int kAnySource = -1;

class Messages : public std::enable_shared_from_this<Messages> {
 public:
  // `failureOf` tells why the group has failed, or null: what has not begun then need not wait for its partner.
  Messages(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::string group,
           std::function<std::exception_ptr()> failureOf);
  // The end, for whoever has made it. What was sent still arrives, unless it is under way; everything else fails.
  void close();

  // The work's tensor (its input, or output) is what travels.
  void send(const WorkPtr& work, int to, int tag);
  void recv(const WorkPtr& work, int from, int tag);
  // Fails everything, now and later. Any thread.
  void abort(const std::exception_ptr& why) { stop(why, true); }
  // The same, but what has been sent still arrives unless it is under way.
  void shutDown(const std::exception_ptr& why) { stop(why, false); }
  // What the library says of the ways.
  void addTo(Numbers& all) const;
  // Waits until what was sent has left, and the callbacks of receives that were late have returned, or the time is
  // over. Once all is stopped, for the callbacks of all receives.
  void drain(milliseconds time);

 private:
  struct Header {
    int64_t tag, bytes;
  };
  struct Wanted {
    WorkPtr work;
    int from;
    int64_t tag;
    TimePoint deadline;
  };
  struct Aside {
    int from;
    int64_t tag;
    at::Tensor bytes;
  };
  struct WayOut {
    std::shared_ptr<Communicator> comm;  // made by the queue's thread
    Queue queue;
  };
  struct WayIn {
    std::shared_ptr<Communicator> comm;
    std::exception_ptr broken;
    std::thread thread;
  };
  // What came of a message: whose receive has ended, if one has, and whether the way can be used no more.
  struct Outcome {
    WorkPtr work;
    std::exception_ptr error, broken;
  };
  using Lock = std::unique_lock<std::mutex>;

  void sendNow(WayOut& way, int to, const Header& header, const at::Tensor& tensor, milliseconds timeout);
  void openTo(WayOut& way, int to, milliseconds timeout);
  void join(std::shared_ptr<Communicator>& place, const tuttiUniqueId& id, int from, int to);

  std::exception_ptr openWays(int from);
  WayIn& wayFrom(int from);
  void serve(int from, WayIn& way);
  void receive(int from, WayIn& way);
  void openFrom(WayIn& way, int from, Lock& lock);
  Outcome takeOne(int from, Communicator& comm, Lock& lock);
  bool tell(int from, WayIn& way, Outcome outcome);
  void takeInto(Communicator& comm, int from, const at::Tensor& memory, const Header& header, milliseconds timeout);
  Outcome deliver(Communicator& comm, int from, const Header& header, const Wanted& wanted);
  std::optional<Outcome> takeAside(Lock& lock, const Wanted& wanted);
  Wanted take(std::list<Wanted>::iterator wanted);
  bool isWanted(int from) const;
  std::list<Wanted>::iterator findWanted(int from, int64_t tag);
  std::exception_ptr want(const Wanted& wanted);
  void watch(TimePoint deadline);
  void endLate();
  std::list<Wanted> takeLate();
  std::exception_ptr lateness(const Wanted& wanted) const;
  void fail(int from, const std::exception_ptr& why);
  void hasTold();
  bool nobodyElseTells() const;
  void stop(const std::exception_ptr& why, bool atOnce);

  std::string key(const char* what, int from, int to) const;
  bool pause(Lock& lock, milliseconds time);

  c10d::Store& store();

  const c10::intrusive_ptr<c10d::Store> given_;
  std::once_flag cloned_;
  c10::intrusive_ptr<c10d::Store> store_;  // a client of its own: others may wait with theirs
  const int rank_, size_;
  const std::string group_;
  const std::function<std::exception_ptr()> failureOf_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable news_;
  std::list<Wanted> wanted_;  // in the order of the calls
  std::list<Aside> aside_;
  std::map<int, std::unique_ptr<WayOut>> out_;
  std::map<int, WayIn> in_;
  std::vector<std::thread> relieved_;     // by another, which receives
  std::set<TimePoint> alarms_;            // those that are set, for deadlines of receives
  std::vector<std::thread::id> tellers_;  // have receives in hand that are wanted no more, and are to be told
  std::shared_ptr<Queue> late_ = std::make_shared<Queue>();  // tells of those that have passed; null when it is closed
  std::exception_ptr closed_;
};

}  // namespace tutti_torch
