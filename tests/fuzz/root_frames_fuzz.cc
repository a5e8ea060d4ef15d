// A root among hostile ranks, which come in any number, say frames in any order, hang up and come again: it ends when
// it is told to, closes every line whose other end has gone, and leaves no descriptor open.
#include "join/root.h"

#include "fuzz/hostile.h"

namespace tutti::fuzz {
namespace {

constexpr int kMostSteps = 64;

control::RootPlace placeFrom(uint8_t how) {
  static std::atomic<uint64_t> jobs{0};
  control::RootPlace place;
  if (how % 2 != 0) place.id.secret.fill(std::byte{0x5a});  // else the root draws one, and hands it over
  place.id.job = ++jobs << 32 | static_cast<uint32_t>(::getpid());
  place.tcp = false;
  return place;
}

// A rank as it should be, but for what the input wants.
Bytes soundHello(Input& in) {
  control::Hello hello;
  hello.size = 1 + in.take<uint8_t>() % 5;
  hello.who.rank = in.take<uint8_t>() % hello.size;
  hello.leftMs = 60'000;
  const auto setting = in.take<uint8_t>();
  hello.agreement = {{"TUTTI_ALGO", setting < 250 ? "ring" : "tree"}};
  return encode(hello);
}

void step(control::Root& root, Running& running, std::vector<Hostile>& lines, Input& in) {
  const auto what = in.take<uint8_t>();
  if (what % 8 < 2 || lines.empty()) {
    HandshakeContext context = control::rootContext(root.id());
    context.encryption = what < 250 ? Encryption::kOff : Encryption::kOn;
    lines.push_back(Hostile::call(control::rootUnixName(root.id().job), context));
    if (what % 8 == 0) lines.back().say(control::Kind::kHello, soundHello(in));
    return;
  }
  Hostile& line = lines[what / 8 % lines.size()];
  switch (what % 8) {
    case 2:
      return line.write(in.bytes(in.take<uint8_t>()));
    case 3:
      return line.close();
    case 4:
      return line.say(control::Kind::kDone, {});
    case 5:
      return root.giveUp(in.take<int8_t>(), 0, "the input wants it");
    default:
      return sayAny(line, running, in);
  }
}

void run(Input in) {
  const control::RootPlace place = placeFrom(in.take<uint8_t>());
  control::Root root(place, {}, Deadline::in(test::longWait()));
  std::vector<Hostile> lines;
  Running running(root);
  for (int steps = 0; !in.empty() && steps < kMostSteps; ++steps) {
    step(root, running, lines, in);
    running.goOn();
  }
  for (Hostile& line : lines) line.part(running);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tutti::fuzz::leavingNoneOpen(tutti::fuzz::run, data, size);
}
