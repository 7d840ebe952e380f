#include "cli/serve/library_turn.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

namespace stag::cli {
namespace {

using For = LibraryTurn::For;

// The thread that has come first would be first as a rule, and may be with any lock: hence many
// rounds.
TEST(LibraryTurn, is_of_principals_before_names_that_wait_already) {
  for (int round = 0; round < 200; ++round) {
    LibraryTurn turn;
    std::string order;
    std::optional<LibraryTurn::Held> first(std::in_place, turn, For::Name);
    const auto ask = [&](For what, char mark) {
      const LibraryTurn::Held held(turn, what);
      order += mark;
    };
    std::thread names([&] {
      ask(For::Name, 'n');
      ask(For::Name, 'n');
    });
    while (turn.waiting(For::Name) == 0) std::this_thread::yield();
    std::thread principal(ask, For::Principal, 'p');
    while (turn.waiting(For::Principal) == 0) std::this_thread::yield();
    first.reset();
    names.join();
    principal.join();
    ASSERT_EQ(order, "pnn") << round;
  }
}

}  // namespace
}  // namespace stag::cli
