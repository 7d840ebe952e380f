// What a server does with the records of another one that is lost (RFC 8881 8.4.2.1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nfs/recovery/recovery.h"
#include "testing/manual_loop.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::recovery {
namespace {

class Nfs4Adoption : public ::testing::Test {
 protected:
  static inline const ClientOwner kAnna{"anna", "1:0"};
  static inline const ClientOwner kBert{"bert", "1:0"};
  static inline const ClientOwner kOld{"SETCLIENTID:old", "1:0"};
  static constexpr Duration kGrace = std::chrono::seconds(90);

  // Starts of the server that is here, and of the one that is lost.
  Recovery& here() { return start("here"); }
  Recovery& there() { return start("there"); }
  Recovery& start(const std::string& name, std::uint32_t lease = 90) {
    auto opened = Recovery::open(path(name), lease, nullptr);
    STAG_CHECK(opened.ok());
    starts_.push_back(*std::move(opened));
    return *starts_.back();
  }
  void add(Recovery& recovery, state::ClientId client, const ClientOwner& owner) {
    EXPECT_EQ(loop_.run(recovery.add(client, owner, loop_, nullptr)).value(), Written::Yes);
  }
  std::string path(const std::string& name) const { return folder_.path() / (name + ".db"); }
  std::unique_ptr<Database> lost() {
    auto opened = Database::open_ended(path("there"));
    STAG_CHECK(opened.ok());
    return *std::move(opened);
  }
  std::string adopt(Recovery& recovery) {
    const auto adopted = recovery.adopt(*lost(), period_, loop_.now() + kGrace);
    return adopted.ok() ? "" : adopted.error();
  }
  void run_sql(const std::string& name, const char* text) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path(name).c_str(), &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, text, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
  }

  vfs::testing::Folder folder_{"/tmp"};
  stag::testing::ManualLoop loop_;
  state::GracePeriod period_;
  struct Nobody final : Recovery::GraceEnd {
    void begin(const Recovery::Owners&) override {}
    void cut_off() noexcept override {}
    void spare(const Recovery::Owners&) noexcept override {}
  } nobody_;
  std::vector<std::unique_ptr<Recovery>> starts_;
};

TEST_F(Nfs4Adoption, the_clients_of_the_lost_server_may_reclaim_here_in_a_grace_period) {
  add(there(), 7, kAnna);
  Recovery& server = here();
  add(server, 7, kBert);
  EXPECT_FALSE(server.may_reclaim(kAnna));
  EXPECT_EQ(adopt(server), "");
  EXPECT_TRUE(server.may_reclaim(kAnna));
  EXPECT_FALSE(server.may_reclaim(kBert)) << "it has lost nothing";
  EXPECT_TRUE(period_.active());
}

TEST_F(Nfs4Adoption, there_nobody_may_reclaim_any_more) {
  add(there(), 7, kAnna);
  EXPECT_EQ(adopt(here()), "");
  EXPECT_FALSE(there().anybody_left());
}

TEST_F(Nfs4Adoption, is_on_disk_before_anybody_reclaims) {
  add(there(), 7, kAnna);
  Recovery& server = here();
  add(server, 7, kBert);
  EXPECT_EQ(adopt(server), "");
  Recovery& next = here();
  EXPECT_TRUE(next.may_reclaim(kAnna));
  EXPECT_TRUE(next.may_reclaim(kBert));
}

TEST_F(Nfs4Adoption, adopting_again_finds_nobody_and_begins_no_grace_period) {
  add(there(), 7, kAnna);
  Recovery& server = here();
  EXPECT_EQ(adopt(server), "");
  EXPECT_TRUE(server.completed(kAnna));
  period_.nobody_left(loop_.now());
  EXPECT_EQ(adopt(server), "");
  EXPECT_FALSE(period_.active());
  EXPECT_FALSE(server.may_reclaim(kAnna));
}

TEST_F(Nfs4Adoption, records_that_cannot_be_removed_there_are_adopted_again_as_one) {
  add(there(), 7, kAnna);
  run_sql("there",
          "CREATE TRIGGER refuse BEFORE DELETE ON clients BEGIN "
          "SELECT RAISE(ABORT, 'read-only'); END");
  Recovery& server = here();
  EXPECT_THAT(adopt(server),
              ::testing::HasSubstr("they are adopted, but stay there, too: read-only"));
  EXPECT_TRUE(period_.active());
  run_sql("there", "DROP TRIGGER refuse");
  Recovery& next = here();
  EXPECT_EQ(adopt(next), "");
  EXPECT_TRUE(next.completed(kAnna)) << "nobody else is left";
  EXPECT_FALSE(there().anybody_left());
}

TEST_F(Nfs4Adoption, leaves_the_records_there_when_they_cannot_be_written_here) {
  add(there(), 7, kAnna);
  Recovery& server = here();
  run_sql("here",
          "CREATE TRIGGER refuse BEFORE INSERT ON clients BEGIN "
          "SELECT RAISE(ABORT, 'no room'); END");
  EXPECT_EQ(adopt(server), "no room");
  EXPECT_FALSE(period_.active());
  EXPECT_FALSE(server.may_reclaim(kAnna));
  EXPECT_TRUE(there().may_reclaim(kAnna));
}

TEST_F(Nfs4Adoption, the_grace_period_ends_early_when_the_last_of_all_is_done) {
  add(there(), 7, kAnna);
  add(here(), 7, kBert);
  Recovery& server = here();
  server.begin_grace(period_, loop_.now() + kGrace / 2);
  EXPECT_EQ(adopt(server), "");
  EXPECT_FALSE(server.completed(kBert)) << "one of its own";
  EXPECT_TRUE(server.completed(kAnna));
  period_.nobody_left(loop_.now());
  EXPECT_FALSE(period_.active());
}

TEST_F(Nfs4Adoption, a_grace_period_in_progress_becomes_longer_never_shorter) {
  add(there(), 7, kAnna);
  add(here(), 7, kBert);
  Recovery& server = here();
  server.begin_grace(period_, loop_.now() + 2 * kGrace);
  EXPECT_EQ(adopt(server), "");
  EXPECT_TRUE(period_.active(loop_.now() + kGrace));
  EXPECT_FALSE(period_.active(loop_.now() + 2 * kGrace));
}

TEST_F(Nfs4Adoption, a_client_of_version_4_0_is_given_the_full_time) {
  add(there(), 7, kOld);
  Recovery& server = here();
  EXPECT_EQ(adopt(server), "");
  period_.nobody_left(loop_.now());
  EXPECT_TRUE(period_.active());
  EXPECT_FALSE(period_.active(loop_.now() + kGrace));
}

// A period that is due is ended on another thread, perhaps when clients were adopted meanwhile.
TEST_F(Nfs4Adoption, the_end_of_an_earlier_grace_period_removes_no_adopted_client) {
  std::vector<std::uint64_t> due;
  period_.finish_by([&](std::uint64_t number, TimePoint) { due.push_back(number); });
  add(there(), 7, kAnna);
  add(here(), 7, kBert);
  Recovery& server = here();
  server.begin_grace(period_, loop_.now() + kGrace);
  EXPECT_TRUE(server.completed(kBert));
  period_.nobody_left(loop_.now());
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(adopt(server), "");
  EXPECT_TRUE(server.finish_grace(period_, due[0], nobody_));
  EXPECT_TRUE(period_.active());
  EXPECT_TRUE(server.may_reclaim(kAnna));
  EXPECT_TRUE(here().may_reclaim(kAnna));
}

TEST_F(Nfs4Adoption, gives_a_client_that_did_not_come_no_right_to_reclaim_after_the_next_start) {
  std::vector<std::uint64_t> due;
  period_.finish_by([&](std::uint64_t number, TimePoint) { due.push_back(number); });
  add(there(), 7, kAnna);
  Recovery& server = here();
  EXPECT_EQ(adopt(server), "");
  EXPECT_TRUE(period_.active(loop_.now() + kGrace));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_TRUE(server.finish_grace(period_, due[0], nobody_));
  EXPECT_FALSE(period_.active());
  EXPECT_FALSE(server.may_reclaim(kAnna));
  EXPECT_FALSE(here().anybody_left());
}

TEST_F(Nfs4Adoption, the_longer_lease_of_the_lost_server_counts_after_a_restart_too) {
  add(start("there", 300), 7, kAnna);
  EXPECT_EQ(lost()->former_lease(), 300u);
  EXPECT_EQ(adopt(here()), "");
  EXPECT_EQ(here().former_lease(), 300u);
}

TEST_F(Nfs4Adoption, servers_are_told_from_each_other_over_all_their_starts) {
  const std::uint64_t server = here().server();
  EXPECT_EQ(here().server(), server);
  EXPECT_NE(there().server(), server);
  EXPECT_NE(there().epoch() & 0xffffff, here().epoch() & 0xffffff) << "by one chance in 8 million";
}

TEST_F(Nfs4Adoption, servers_whose_clients_have_the_same_numbers_adopt_nobody) {
  add(there(), 7, kAnna);
  Recovery* server = &here();
  // Stateids have sixteen bits of it.
  for (const std::uint32_t same : {server->epoch(), server->epoch() + (1 << 16)}) {
    run_sql("there", ("UPDATE epochs SET epoch = " + std::to_string(same)).c_str());
    EXPECT_THAT(adopt(*server), ::testing::HasSubstr("restart this one, and adopt again"));
    EXPECT_FALSE(period_.active());
  }
  server = &here();
  EXPECT_EQ(adopt(*server), "");
}

TEST_F(Nfs4Adoption, looking_at_the_records_is_no_start_of_that_server) {
  const std::uint32_t epoch = there().epoch();
  EXPECT_EQ(lost()->epoch(), epoch);
  EXPECT_EQ(there().epoch(), epoch + 1);
}

TEST_F(Nfs4Adoption, the_lost_server_counts_its_starts_on) {
  add(there(), 7, kAnna);
  const std::uint32_t epoch = starts_.back()->epoch();
  EXPECT_EQ(adopt(here()), "");
  EXPECT_EQ(there().epoch(), epoch + 1);
}

TEST_F(Nfs4Adoption, records_of_a_later_version_or_none_at_all_are_one_sentence) {
  EXPECT_THAT(Database::open_ended(path("nothing")).error(),
              ::testing::HasSubstr("unable to open"));
  there();
  run_sql("there", "PRAGMA user_version = 2");
  EXPECT_THAT(
      Database::open_ended(path("there")).error(),
      ::testing::HasSubstr("they are of a newer version of stag; start that version again"));
}

}  // namespace
}  // namespace stag::nfs::recovery
