// The real libnfsidmap, where it is installed: users that every machine has.
#include "cli/serve/id_mapping.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "net/job_queue.h"
#include "testing/failing_users.h"

namespace stag::cli {
namespace {

using nfs::nfs4::IdKind;

TEST(LibNfsIdMap, knows_the_users_and_groups_of_this_machine_in_its_domain) {
  const auto library = open_libnfsidmap("example.net");
  if (!library) GTEST_SKIP() << library.error();
  nfs::nfs4::NameService& names = *library->names;
  EXPECT_EQ(names.name_of(IdKind::User, 0), "root@example.net");
  EXPECT_EQ(names.name_of(IdKind::Group, 0), "root@example.net");
  EXPECT_EQ(names.id_of(IdKind::User, "root@example.net"), 0u);
  EXPECT_EQ(names.id_of(IdKind::Group, "root@example.net"), 0u);
}

TEST(LibNfsIdMap, knows_nobody_else) {
  const auto library = open_libnfsidmap("example.net");
  if (!library) GTEST_SKIP() << library.error();
  nfs::nfs4::NameService& names = *library->names;
  for (const char* name : {"root@elsewhere.net", "root", "", "@", "@example.net",
                           "no such@example.net", "root@example.net@example.net"})
    EXPECT_FALSE(names.id_of(IdKind::User, name)) << name;
  EXPECT_FALSE(names.name_of(IdKind::User, 0xfffffff0u));
}

TEST(LibNfsIdMap, knows_the_principals_of_the_realm_that_is_named_like_its_domain) {
  const auto library = open_libnfsidmap("example.net");
  if (!library) GTEST_SKIP() << library.error();
  const auto root = library->principals->ids_of("root@EXAMPLE.NET");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->uid, 0u);
  EXPECT_EQ(root->gid, 0u);
  for (const char* name : {"root@ELSEWHERE.NET", "root", "", "@", "no such@EXAMPLE.NET",
                           "host/client.example.net@EXAMPLE.NET", "nfs/root@EXAMPLE.NET"})
    EXPECT_EQ(library->principals->ids_of(name).error(), nfs::NoUser::Unknown) << name;
}

TEST(LibNfsIdMap, calls_no_user_unknown_while_the_name_service_fails) {
  const auto library = open_libnfsidmap("example.net");
  if (!library) GTEST_SKIP() << library.error();
  {
    const testing::FailingUsers failing;
    EXPECT_EQ(library->principals->ids_of("root@EXAMPLE.NET").error(), nfs::NoUser::Failed);
    EXPECT_EQ(library->principals->ids_of("host/client.example.net@EXAMPLE.NET").error(),
              nfs::NoUser::Unknown);
  }
  EXPECT_TRUE(library->principals->ids_of("root@EXAMPLE.NET"));
}

// Whether `asked` is answered although another thread uses the library.
template <class Ask>
bool is_answered_out_of_turn(const NfsIdMap& library, LibraryTurn::For what, Ask ask) {
  std::optional<LibraryTurn::Held> held(std::in_place, *library.turn, LibraryTurn::For::Name);
  std::future<void> answered = std::async(std::launch::async, ask);
  const auto is_there = [&] {
    return answered.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (library.turn->waiting(what) == 0 && !is_there()) std::this_thread::yield();
  const bool out_of_turn = is_there();
  held.reset();
  answered.get();
  return out_of_turn;
}

TEST(LibNfsIdMap, is_asked_in_turn_and_of_machines_not_at_all) {
  const auto library = open_libnfsidmap("example.net");
  if (!library) GTEST_SKIP() << library.error();
  const auto ask = [&](const char* principal) {
    return [&library, principal] { static_cast<void>(library->principals->ids_of(principal)); };
  };
  using For = LibraryTurn::For;
  EXPECT_FALSE(is_answered_out_of_turn(*library, For::Principal, ask("root@EXAMPLE.NET")));
  EXPECT_FALSE(is_answered_out_of_turn(*library, For::Name,
                                       [&] { library->names->name_of(IdKind::User, 0); }));
  EXPECT_FALSE(is_answered_out_of_turn(
      *library, For::Name, [&] { library->names->id_of(IdKind::User, "root@example.net"); }));
  EXPECT_TRUE(is_answered_out_of_turn(*library, For::Principal, ask("host/a.net@EXAMPLE.NET")));
}

// As when all its users come back after a restart of the server.
TEST(IdMapping, has_room_for_the_users_of_a_login_host) {
  net::JobQueue queue(workers_for_principals().limits);
  int host = 0;
  for (int user = 0; user < 2000; ++user) {
    Executor::Job job;
    job.client = &host;
    ASSERT_TRUE(queue.admit(std::move(job), TimePoint())) << user;
  }
  EXPECT_TRUE(queue.begin(TimePoint()) && queue.begin(TimePoint()));
  EXPECT_FALSE(queue.begin(TimePoint())) << "other hosts have threads left";
}

TEST(IdMapping, refuses_what_is_no_domain) {
  IdMappingOptions options;
  for (const char* domain : {"a b", "a\nMethod = static", "user@domain"}) {
    options.domain = domain;
    EXPECT_FALSE(options.open()) << domain;
  }
}

}  // namespace
}  // namespace stag::cli
