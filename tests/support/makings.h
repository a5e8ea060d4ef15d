// What tests of making communicators share.
#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "support/api_ranks.h"

namespace tutti::test {

inline void expectWords(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

inline int sumOfOnes(tuttiComm_t comm) {
  int value = 1;
  CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
  return value;
}

// All ranks of one communicator, driven by this thread: a group for what they do together.
template <class Body>
tuttiResult_t groupOf(Body body) {
  CHECK_TUTTI(tuttiGroupStart());
  body();
  return tuttiGroupEnd();
}

inline void expectWorks(const std::vector<tuttiComm_t>& comms, int sum) {
  std::vector<int> values(comms.size(), 1);
  EXPECT_EQ(groupOf([&] {
              for (size_t i = 0; i < comms.size(); ++i)
                CHECK_TUTTI(tuttiAllReduce(&values[i], &values[i], 1, tuttiInt32, tuttiSum, comms[i], nullptr));
            }),
            tuttiSuccess)
      << tuttiGetLastError(nullptr);
  EXPECT_EQ(values, std::vector<int>(comms.size(), sum));
}

inline void destroyEach(const std::vector<tuttiComm_t>& comms) {
  for (const tuttiComm_t comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
}

inline std::vector<tuttiComm_t> newRanks(int ranks) {
  std::vector<tuttiComm_t> comms(static_cast<size_t>(ranks));
  CHECK_TUTTI(tuttiCommInitAll(comms.data(), ranks, nullptr));
  return comms;
}

}  // namespace tutti::test
