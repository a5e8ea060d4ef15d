// Sizes as people write them.
#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(ByteSize, InPowersOf1024) {
  EXPECT_EQ(parseByteSize("0"), 0u);
  EXPECT_EQ(parseByteSize("8"), 8u);
  EXPECT_EQ(parseByteSize("64k"), 65536u);
  EXPECT_EQ(parseByteSize("1.5M"), 1572864u);
  EXPECT_EQ(parseByteSize("2G"), 2147483648u);
  EXPECT_EQ(parseByteSize("1048576G"), size_t{1} << 50);
}

TEST(ByteSize, WhatIsNone) {
  for (const char* text : {"", "K", "much", "-1", "1T", "1GG", "1 K", "nan", "inf", "1e30", "1048577G"})
    EXPECT_FALSE(parseByteSize(text)) << text;
}

TEST(ByteSize, AsText) {
  for (const char* text : {"0", "8", "64K", "1536K", "2G", "1023M", "1048577"})
    EXPECT_EQ(byteSizeText(*parseByteSize(text)), text);
  EXPECT_EQ(byteSizeText(1024), "1K");
}

}  // namespace
}  // namespace tutti
