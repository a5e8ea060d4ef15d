#include "team/mail_key.h"

#include <gtest/gtest.h>

#include <set>

namespace tutti::comm {
namespace {

TEST(MailKeys, NoTwoUsesShareOne) {
  std::set<uint64_t> keys{MailKey::windows().mailbox(), MailKey::windows().stream(1), MailKey::windows().stream(~0U)};
  for (const int channel : {0, 1, 2, 64, 255, 65535})
    for (const uint32_t attempt : {0U, 1U, ~0U})
      keys.insert(MailKey::link(static_cast<uint16_t>(channel)).stream(attempt));
  EXPECT_EQ(keys.size(), 3U + 6U * 3U);
  EXPECT_EQ(MailKey::link(7).mailbox(), MailKey::link(7).stream(0));
}

}  // namespace
}  // namespace tutti::comm
