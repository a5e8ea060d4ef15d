// Fewer descriptors for this process, for as long as this lives.
#pragma once
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace tutti::test {

class FewFiles {
 public:
  // What is open stays open, also where that is more than `most`.
  explicit FewFiles(rlim_t most) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace tutti::test
