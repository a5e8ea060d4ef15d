// A rank among hostile ones, in the tree or on its way there, that say frames in any order on any of their lines, hang
// up and call again, while its owner does this and that: it ends when it is told to, closes every line whose other end
// has gone, leaves no descriptor open, and knows each rank by its number.
#include "fuzz/world.h"

namespace tutti::fuzz {
namespace {

constexpr int kMostSteps = 64;

// `exchanges`: how many it has begun, which it numbers as Plane::allGather() does.
void ownerDoes(World& world, uint64_t& exchanges, Input& in) {
  control::ControlNode& member = world.member();
  const auto what = in.take<uint8_t>();
  const auto key = in.take<uint8_t>();
  const int peer = key % world.size();
  // Before it has joined it may do no more.
  if (!member.mailbox().hasJoined() && what % 8 != 4 && what % 8 != 5) return;
  switch (what % 8) {
    case 0:
      return member.post(peer, key, in.bytes(16));
    case 1:
      return member.ask(peer, in.bytes(16));
    case 2:
      if (peer != world.rank()) member.requestStream(peer, key, static_cast<control::StreamKind>(what / 8 % 2));
      return;
    case 3:
      return member.startGather(++exchanges, in.bytes(16));
    case 4:
      return member.fail({peer, static_cast<control::Stop>(what / 8 % 5), ErrorCode::kRemote, "the input wants it"});
    case 5:
      return member.leaveLater();
    case 6:
      (void)member.mailbox().pollStream(peer, key);
      return;
    default:
      (void)member.mailbox().poll(peer, key);
  }
}

void step(World& world, uint64_t& exchanges, Input& in) {
  const auto what = in.take<uint8_t>();
  auto& lines = world.lines();
  Hostile& line = lines[what / 8 % lines.size()];
  switch (what % 8) {
    case 0:
      return line.write(in.bytes(in.take<uint8_t>()));
    case 1:
      return line.close();
    case 2:
      if (world.listens()) lines.push_back(world.call(in.take<uint8_t>() % world.size()));
      return;
    case 3:
      return ownerDoes(world, exchanges, in);
    default:
      return sayAny(line, world.running(), in);
  }
}

// Of a peer that has joined before this rank has.
void callEarly(World& world, Input& in) {
  world.lines().push_back(world.call(in.take<uint8_t>() % world.size()));
  world.lines().back().say(control::Kind::kStream, payloadFrom(control::Kind::kStream, in));
}

void run(Input in) {
  const auto how = in.take<uint8_t>();
  const bool top = how % 2 == 0;
  World world(top ? 0 : 1, top ? 3 : 5, how / 32 % 2 != 0);
  world.letCome(static_cast<World::Stage>(how / 2 % 4), how / 8 % 4, [&] {
    for (int streams = how / 64; streams > 0; --streams) callEarly(world, in);
  });
  uint64_t exchanges = 0;
  for (int steps = 0; !in.empty() && steps < kMostSteps; ++steps) {
    try {
      step(world, exchanges, in);
      world.running().goOn();
    } catch (const Error&) {  // the owner asked for what it cannot have
    }
  }
  for (Hostile& line : world.lines()) line.part(world.running());
  const control::ControlNode& member = world.member();
  if (world.member().mailbox().hasJoined())
    for (int r = 0; r < world.size(); ++r) require(member.who(r).rank == r);
  // What comes from outside is not this rank's own trouble.
  const auto failure = world.member().mailbox().failure();
  require(!failure || !failure->text.starts_with(describe(world.who(world.rank())) + " failed: "));
  world.end();
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tutti::fuzz::leavingNoneOpen(tutti::fuzz::run, data, size);
}
