// What came of a run, for people's tools: JUnit's XML, as continuous integration shows it, and
// JSON.
#pragma once

#include <string>
#include <vector>

#include "conform/conform.h"

namespace stag::conform {

struct Counts {
  std::size_t pass = 0, fail = 0, skipped = 0, listed = 0;

  void add(Outcome outcome);
  std::size_t all() const { return pass + fail + skipped + listed; }
};
Counts count(const std::vector<Result>& results);

// `trouble` says what ended the run early or remains, or is empty: cases may be missing then.

// A document with a <testsuite> for each suite; cases without a verdict of their own (skipped,
// listed) are <skipped>, trouble is an <error> of a case "the run". ASCII only.
std::string junit(const std::vector<Result>& results, const std::string& trouble);
// {"server", "trouble", "counts", "cases": [{"suite", "group", "name", "section", "requirements",
// "outcome", "detail", "seconds"}]}. ASCII only.
std::string json(const std::string& server, const std::vector<Result>& results,
                 const std::string& trouble);

}  // namespace stag::conform
