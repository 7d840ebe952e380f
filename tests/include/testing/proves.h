// PROVES("R8166-…", …) as a test's first statement claims up to four requirement ids of
// docs/requirements.tsv. The claim is recorded in the test's result, so tools/requirements counts
// it only when the test has run and passed.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace stag::testing {

inline void record_proof(std::initializer_list<const char*> ids) {
  ASSERT_LE(ids.size(), 4u)
      << "a test that proves more than four requirements proves none of them well";
  std::string joined;
  for (const char* id : ids) joined += (joined.empty() ? "" : " ") + std::string(id);
  ::testing::Test::RecordProperty("proves", joined);
}

}  // namespace stag::testing

#define PROVES(...) ::stag::testing::record_proof({__VA_ARGS__})
