// What a call said went wrong.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::test {

inline std::string lastText(tuttiComm_t comm) { return tuttiGetLastError(comm); }

inline void expectText(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

}  // namespace tutti::test
