#include "doctor/words.h"

#include <gtest/gtest.h>

#include "unit/doctor_records.h"

namespace tutti::doctor::test {
namespace {

TEST(DoctorWords, SentencesAreWrappedBetweenWords) {
  EXPECT_EQ(wrapped("all is well.", 100), "all is well.\n");
  EXPECT_EQ(wrapped("one two three four", 11), "one two\n  three\n  four\n");
  EXPECT_EQ(wrapped("one two three four", 13), "one two three\n  four\n");
  EXPECT_EQ(wrapped("a averyveryverylongword b", 10), "a\n  averyveryverylongword\n  b\n");
  EXPECT_EQ(wrapped("h\u00f6st \u00fcber", 9), "h\u00f6st \u00fcber\n") << "letters count, not bytes";
}

TEST(DoctorWords, OneIsNotMany) {
  EXPECT_EQ(elementsText(1), "1 element");
  EXPECT_EQ(elementsText(0), "0 elements");
  EXPECT_EQ(elementsText(2, "float"), "2 float elements");
  EXPECT_EQ(sizeText(1), "1 byte");
  EXPECT_EQ(sizeText(0), "0 bytes");
}

TEST(DoctorWords, WhatTheRanksDoNotShareIsNotSaid) {
  EXPECT_EQ(describe(collective(4, Collective::kAllGatherV)), "all-gather-v #4 (float, 4 KiB in all)");
  EXPECT_EQ(describe(collective(4, Collective::kAllToAllV)), "all-to-all-v #4 (float)");
  EXPECT_EQ(describe(collective(4, Collective::kScatterV)), "scatter-v #4 (float, root 0)");
  EXPECT_EQ(describe(collective(4, Collective::kBarrier)), "barrier #4");
}

}  // namespace
}  // namespace tutti::doctor::test
