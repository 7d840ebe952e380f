#include "conform/conform.h"

#include <fnmatch.h>

#include <algorithm>

namespace stag::conform {
namespace {

double seconds_between(TimePoint begin, TimePoint end) {
  return static_cast<double>((end - begin).count()) * 1e-9;
}

Task<void> run_case(Suite& suite, std::size_t index, Loop& loop, CancelToken cancel,
                    Observer& observer) {
  const Case& one = suite.cases()[index];
  const TimePoint begin = loop.now();
  Verdict verdict = co_await suite.run(index);
  if (cancel.cancelled()) co_return;
  observer.on_result({one.title, std::move(verdict), seconds_between(begin, loop.now())});
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Pass:
      return "pass";
    case Outcome::Fail:
      return "fail";
    case Outcome::Skipped:
      return "skipped";
    case Outcome::Listed:
      break;
  }
  return "listed";
}

bool Selection::has(const Case& one) const {
  return fnmatch(pattern.c_str(), one.title.full().c_str(), 0) == 0;
}

std::string joined(std::string first, const std::string& second) {
  const bool both = !first.empty() && !second.empty();
  return std::move(first) + (both ? "; " : "") + second;
}

Task<std::string> run(Suite& suite, Selection selection, Loop& loop, CancelToken cancel,
                      Observer& observer) {
  const std::vector<Case>& cases = suite.cases();
  bool begun = false;
  std::string given_up;
  for (std::size_t i = 0; i < cases.size() && given_up.empty() && !cancel.cancelled(); ++i) {
    const Case& one = cases[i];
    if (!selection.has(one)) continue;
    if (!one.listed.empty()) {
      observer.on_result({one.title, {Outcome::Listed, one.listed}, 0});
      continue;
    }
    if (one.dangerous && !selection.dangerous) {
      observer.on_result({one.title, Verdict::skip("dangerous: --dangerous runs it"), 0});
      continue;
    }
    if (one.slow && !selection.slow) {
      observer.on_result(
          {one.title, Verdict::skip("waits for a lease to run out: --slow-cases runs it"), 0});
      continue;
    }
    if (!begun) {
      std::string trouble = co_await suite.begin();
      begun = true;
      if (!trouble.empty()) {
        // That the beginning was interrupted is no trouble of the server's.
        if (cancel.cancelled()) trouble.clear();
        const std::string remains = co_await suite.end();
        co_return joined(std::move(trouble), remains);
      }
    }
    observer.on_begin(one.title);
    co_await run_case(suite, i, loop, cancel, observer);
    given_up = suite.given_up();
  }
  if (!begun) co_return std::string();
  const std::string trouble = co_await suite.end();
  co_return joined(std::move(given_up), trouble);
}

}  // namespace stag::conform
