// A filter that selects no test is a mistake, usually in its spelling, which GoogleTest reports as a success.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>

namespace tutti::test {

// To be called after the tests. Says so when they should have run (rather than be listed, say) and there were none.
inline bool noneSelected() {
  const auto& run = *::testing::UnitTest::GetInstance();
  if (run.start_timestamp() == 0 || run.test_to_run_count() > 0) return false;
  std::fprintf(stderr, "no test fits --gtest_filter=%s; --gtest_list_tests shows their names\n",
               ::testing::GTEST_FLAG(filter).c_str());
  return true;
}

}  // namespace tutti::test
