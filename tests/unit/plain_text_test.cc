// What a peer says, before it stands in a log.
#include "base/plain_text.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "process/log.h"

namespace tutti {
namespace {

TEST(PlainText, KeepsWhatPeopleWrite) {
  for (const char* text : {"", "node-17.cluster", "rank 3 (host n2, pid 411) left: …", "Größe 10 µs", "日本", "a\\b"})
    EXPECT_EQ(plainText(text, 100), text);
}

TEST(PlainText, ShowsWhatWouldSteerATerminal) {
  EXPECT_EQ(plainText("\x1b[2Jn1\r\n\ttutti warning: all is well\x7f", 100),
            "\\x1b[2Jn1\\x0d\\x0a\\x09tutti warning: all is well\\x7f");
  EXPECT_EQ(plainText(std::string("a\0b", 3), 100), "a\\x00b");
  EXPECT_EQ(plainText("\xc2\x9b"
                      "2J",
                      100),
            "\\xc2\\x9b2J")
      << "C1, in UTF-8";
  EXPECT_EQ(plainText("a\xe2\x80\xae"
                      "b",
                      100),
            "a\\xe2\\x80\\xaeb")
      << "from right to left";
}

TEST(PlainText, ShowsWhatIsNoUtf8) {
  for (const char* text : {"\x9b"
                           "2J",
                           "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff",
                           "\xc2"
                           "A"})
    for (const char c : plainText(text, 100)) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << text;
}

TEST(PlainText, IsCutToItsLength) {
  EXPECT_EQ(plainText("abcdef", 6), "abcdef");
  EXPECT_EQ(plainText("abcdefg", 6), "abc...");
  EXPECT_EQ(plainText("ab\ncdefg", 6), "ab...") << "no half of an escape";
  EXPECT_EQ(plainText(std::string(1 << 20, 'x'), 300).size(), 300u);
}

TEST(PlainText, StaysAsItIs) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const size_t most = 3 + random() % 60;
    const std::string once = plainText(text, most);
    EXPECT_LE(once.size(), most);
    EXPECT_EQ(plainText(once, most), once);
  }
}

TEST(JsonDepth, CountsBracketsOutsideOfTexts) {
  for (const auto& [text, depth] : std::map<std::string, size_t>{{"", 0},
                                                                 {"7", 0},
                                                                 {"{}", 1},
                                                                 {R"({"a": [1, [2]], "b": {}})", 3},
                                                                 {R"(["[[[[", "\"[[", "\\", []])", 2},
                                                                 {"]]]}[", 1}})
    EXPECT_EQ(jsonDepth(text), depth) << text;
  EXPECT_EQ(jsonDepth(std::string(100'000, '[')), 100'000u);
}

TEST(PlainText, IsAllThatALineOfTheLogHas) {
  testing::internal::CaptureStderr();
  log::warn("refused {}", "\x1b]0;owned\x07");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_NE(line.find("\\x1b]0;owned\\x07"), std::string::npos) << line;
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace tutti
