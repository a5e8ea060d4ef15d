// Why a peer gives up, as an owner gets to read it.
#include <gtest/gtest.h>

#include "wire/messages.h"

namespace tutti::control {
namespace {

TEST(ReasonsOfAPeer, AreNeverEmpty) {
  EXPECT_EQ(decodeRefusal(encode(Refusal{ErrorCode::kRemote, ""})).text, "no reason was given");
  EXPECT_EQ(decodeFailure(encode(Failure{1, Stop::kError, ErrorCode::kRemote, ""})).text, "no reason was given");
  EXPECT_EQ(decodeShrinkTried(encode(ShrinkTried{7, Refusal{ErrorCode::kRemote, ""}})).refusal->text,
            "no reason was given");
}

TEST(ReasonsOfAPeer, AreAsItSaidThem) {
  EXPECT_EQ(decodeRefusal(encode(Refusal{ErrorCode::kRemote, "the power"})).text, "the power");
}

}  // namespace
}  // namespace tutti::control
