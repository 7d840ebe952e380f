#include "rpc/connection.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "base/reason.h"

namespace stag::rpc {
namespace {

TEST(RpcConnection, has_a_name_that_no_other_one_gets) {
  Connection first, second;
  EXPECT_NE(first.id(), 0u);
  EXPECT_NE(first.id(), second.id());
}

TEST(RpcConnection, tells_its_watches_once_that_it_is_gone) {
  Connection connection;
  int told = 0;
  Connection::Watch one, two;
  ASSERT_TRUE(one.start(connection, [&] { ++told; }));
  ASSERT_TRUE(two.start(connection, [&] { ++told; }));
  EXPECT_FALSE(connection.down());
  connection.end();
  connection.end();
  EXPECT_TRUE(connection.down());
  EXPECT_EQ(told, 2);
}

TEST(RpcConnection, tells_its_watches_when_it_is_destroyed) {
  int told = 0;
  Connection::Watch watch;
  {
    Connection connection;
    ASSERT_TRUE(watch.start(connection, [&] { ++told; }));
  }
  EXPECT_EQ(told, 1);
}

TEST(RpcConnection, cannot_be_watched_when_it_is_gone) {
  Connection connection;
  connection.end();
  int told = 0;
  Connection::Watch watch;
  EXPECT_FALSE(watch.start(connection, [&] { ++told; }));
  EXPECT_EQ(told, 0);
}

TEST(RpcConnection, tells_nothing_to_a_watch_that_was_stopped_or_destroyed) {
  Connection connection;
  int told = 0;
  Connection::Watch before, stopped, after;
  ASSERT_TRUE(before.start(connection, [&] { ++told; }));
  ASSERT_TRUE(stopped.start(connection, [&] { told += 100; }));
  ASSERT_TRUE(after.start(connection, [&] { ++told; }));
  {
    Connection::Watch destroyed;
    ASSERT_TRUE(destroyed.start(connection, [&] { told += 100; }));
  }
  stopped.stop();
  connection.end();
  EXPECT_EQ(told, 2);
}

TEST(RpcConnection, lets_a_watch_go_and_stop_others_from_inside) {
  Connection connection;
  int told = 0;
  auto other = std::make_unique<Connection::Watch>();
  std::optional<Connection::Watch> self(std::in_place);
  ASSERT_TRUE(other->start(connection, [&] { told += 100; }));
  ASSERT_TRUE(self->start(connection, [&] {
    ++told;
    self.reset();
    other.reset();
    Connection::Watch late;
    EXPECT_FALSE(late.start(connection, [&] { told += 100; }));
  }));
  connection.end();
  EXPECT_EQ(told, 1);
}

TEST(RpcConnection, tells_the_others_when_a_watch_throws) {
  Connection connection;
  int told = 0;
  Connection::Watch good, bad;
  ASSERT_TRUE(good.start(connection, [&] { ++told; }));
  ASSERT_TRUE(bad.start(connection, [] { throw std::runtime_error("no"); }));
  const std::uint64_t before = reason_counters().of(Reason::RpcHandlerFailed);
  connection.end();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(reason_counters().of(Reason::RpcHandlerFailed), before + 1);
}

}  // namespace
}  // namespace stag::rpc
