// Two ends of a striped link over devices that delay, refuse and break: every slot comes once, in its order, unchanged,
// or the link says that it has failed.
#include "transports/verbs/striped_link.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "support/sanitized.h"
#include "verbs/striped_world.h"

namespace tutti::verbs {
namespace {

TEST(StripedLink, OnePathDelivers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    World world(seed, {.paths = 1, .slots = 500});
    EXPECT_TRUE(world.run()) << "seed " << seed << ": " << world.link(0).error();
  }
}

TEST(StripedLink, SeveralPathsDeliver) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const size_t paths : {2, 3, 8}) {
      World world(seed, {.paths = paths, .depth = seed % 2 ? 8u : 1u, .slots = 300});
      EXPECT_TRUE(world.run()) << "seed " << seed << ": " << world.link(0).error();
    }
}

TEST(StripedLink, SlotsInGpusAreSeenWhenTheyAreThere) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const double breaks : {0.0, 1e-4}) {
      World world(seed, {.paths = 3, .depth = 1u << seed % 4, .slots = 400, .breaks = breaks, .onGpu = true});
      const bool ended = world.run();
      EXPECT_TRUE(ended || breaks > 0) << "seed " << seed << ": " << world.link(0).error();
    }
}

TEST(StripedLink, TheLastPathTakesTheLinkWithIt) {
  World world(1, {.paths = 1, .slots = 100'000, .breaks = 1e-3});
  EXPECT_FALSE(world.run());
  const std::string error = world.link(0).error() + world.link(1).error();
  EXPECT_EQ(error.substr(0, 8), "fake_0: ") << error;
}

// Of many worlds in which paths break, and are refused, and come back.
struct Tally {
  uint64_t moved = 0, broken = 0, revived = 0, failed = 0, worlds = 0;
  void run(uint64_t seed) {
    const size_t paths = 3 + seed % 4;
    World world(
        seed,
        {.paths = paths,
         .depth = 1u << seed % 5,
         .slots = 400,
         .breaks = 3e-5 * static_cast<double>(paths),
         .faults = {
             .refusedWrite = 1e-4, .refusedNotes = 1e-4, .refusedLife = 0.2, .failedPoll = 1e-5, .inactivePort = 0.5}});
    if (!world.run()) {
      ++failed;
      for (size_t end = 0; end < 2; ++end) {  // for want of paths, and for nothing else
        const std::string error = world.link(end).error();
        EXPECT_TRUE(error.empty() || error.starts_with("fake_")) << error;
      }
    }
    moved += world.moved();
    broken += world.link(0).broken();
    revived += world.link(0).revived();
    ++worlds;
  }
};

TEST(StripedLink, WhatABrokenPathHeldGoesOtherWays) {
  const uint64_t slots = kSanitized ? 50'000 : 1'000'000;
  Tally tally;
  for (uint64_t seed = 0; tally.moved < slots; ++seed) {
    tally.run(seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  std::printf("%lu slots in %lu worlds: %lu paths broke, %lu came back, %lu links lost their last one\n", tally.moved,
              tally.worlds, tally.broken, tally.revived, tally.failed);
  EXPECT_GT(tally.broken, tally.worlds);
  EXPECT_GT(tally.revived, tally.worlds / 2);
  EXPECT_LT(tally.failed, tally.worlds / 2);
}

}  // namespace
}  // namespace tutti::verbs
