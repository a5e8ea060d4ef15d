// A rank whose owner calls shrink(), among hostile survivors: led by one, or leading them. They call and hang up, and
// say frames in any order, some of which make a new plane come about. Its owner gets an answer when the rank is told to
// end, all that was begun on the way ends as well, and no descriptor stays open.
#include "base/deadline.h"
#include "fuzz/world.h"
#include "job/parcel.h"

namespace tutti::fuzz {
namespace {

using control::Kind;

constexpr int kMostSteps = 48;
constexpr std::chrono::milliseconds kMoment(2), kShrinkTime(2000);

// The thread of the rank's owner.
class Owner {
 public:
  Owner(control::ControlNode& member, const control::JoinRequest& like, const std::vector<int>& leftOut)
      : thread_([&member, like, leftOut] { shrink(member, like, leftOut); }) {}
  ~Owner() { thread_.join(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

 private:
  static void shrink(control::ControlNode& member, const control::JoinRequest& like, const std::vector<int>& leftOut) {
    try {
      const auto result = member.shrink(like, leftOut, {});
      require(result->mailbox().hasJoined() && result->size() > 0);
      result->leaveLater();
    } catch (const Error& error) {
      require(*error.what() != '\0');
    }
  }
  std::thread thread_;
};

control::JoinRequest likeOf(bool late) {
  control::JoinRequest like;
  like.deadline = Deadline::in(late ? std::chrono::milliseconds(0) : kShrinkTime);
  like.heartbeat = std::chrono::milliseconds(0);
  return like;
}

// Mostly what an honest rank says: the first bits are other rounds, and lists of ranks to leave out.
control::ShrinkCall callFrom(int rank, unsigned how) {
  return {rank, how / 128, how >> 5 & 3, how >> 4 & 1, "rank 2", {}};
}

class Shrinking {
 public:
  explicit Shrinking(World& world) : world_(world) {}
  ~Shrinking() {
    for (const auto& root : roots_) root->halt();
  }
  Shrinking(const Shrinking&) = delete;
  Shrinking& operator=(const Shrinking&) = delete;

  // What the rank has told of the job that is tried.
  void listen() {
    for (Hostile& line : world_.lines())
      while (const auto frame = line.heard())
        if (static_cast<Kind>(frame->type) == Kind::kShrinkTry) job_ = control::decodeShrinkTry(frame->payload).id.job;
  }
  void welcome(int at, Deadline deadline) {
    if (auto line = world_.answer(at, deadline)) world_.lines().push_back(std::move(*line));
  }
  void step(Input& in) {
    const auto what = in.take<uint8_t>();
    auto& lines = world_.lines();
    Hostile& line = lines[what / 16 % lines.size()];
    const auto from = static_cast<int>(what / 16 % static_cast<unsigned>(world_.size()));
    switch (what % 16) {
      case 0:
      case 1:
      case 2:
        return welcome(from, soon());
      case 3:
      case 4:
        lines.push_back(world_.call(from));
        return lines.back().say(what % 16 == 3 ? Kind::kShrinkCall : Kind::kShrinkProbe,
                                encode(callFrom(from, in.take<uint8_t>())));
      case 5:
        return line.close();
      case 6:
        return propose(line, in);
      case 7:
        listen();
        return line.say(Kind::kShrinkTried, encode(control::ShrinkTried{job_, {}}));
      case 8:
        return line.say(Kind::kShrinkCommit, Writer().value(job_).take());
      case 9:
        return line.write(in.bytes(in.take<uint8_t>()));
      case 10:
        std::this_thread::sleep_for(kMoment);
        return;
      default:
        return sayAny(line, world_.running(), in);
    }
  }

 private:
  // As the leader does, with a root to meet at, or with none.
  void propose(Hostile& line, Input& in) {
    const auto how = in.take<uint8_t>();
    control::RootPlace place = control::anyRootPlace();
    place.tcp = false;
    control::ShrinkTry proposal;
    for (int rank = 0; rank < world_.size(); ++rank)
      if ((how >> rank & 1) != 0) proposal.survivors.push_back(rank);
    job_ = proposal.id.job = place.id.job;
    const control::Secret drawn = place.id.secret;
    const int leader = how >> 5 & 1;
    proposal.parcel = control::sealFor(world_.who(world_.rank()).endpoint.key, World::keyOf(leader), job_, drawn);
    if ((how & 0x40) == 0) {
      place.id = world_.member().childId(place.id);
      roots_.push_back(control::startRoot(place, {}, Deadline::in(kShrinkTime)));
    }
    line.say(Kind::kShrinkTry, encode(proposal));
  }

  World& world_;
  uint64_t job_ = 0;
  std::vector<std::shared_ptr<control::Root>> roots_;
};

void run(Input in) {
  const auto how = in.take<uint8_t>();
  const bool leads = how % 2 == 0, late = how / 2 % 8 == 7;
  World world(leads ? 0 : 1, leads ? 3 : 5);
  world.letCome(World::Stage::kJoined);
  const std::vector<int> leftOut = how >= 128 ? std::vector{2} : std::vector<int>{};
  std::optional<Owner> owner(std::in_place, world.member(), likeOf(late), leftOut);
  Shrinking shrinking(world);
  if (!leads) shrinking.welcome(0, Deadline::in(test::longWait()));  // as soon as the owner has called
  for (int steps = 0; !in.empty() && steps < kMostSteps; ++steps) {
    shrinking.step(in);
    world.running().goOn();
  }
  world.member().leaveLater();
  world.end();
  owner.reset();
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tutti::fuzz::leavingNoneOpen(tutti::fuzz::run, data, size);
}
