// The main function of every GoogleTest program: as the usual one, but a run in which every test was skipped ends with
// the status that ctest knows as "skipped" instead of passing for a success, and one without any test fails.
#include <gtest/gtest.h>

#include "support/selected.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  if (tutti::test::noneSelected()) return 1;
  const auto& run = *testing::UnitTest::GetInstance();
  return status == 0 && run.skipped_test_count() > 0 && run.successful_test_count() == 0 ? kSkipped : status;
}
