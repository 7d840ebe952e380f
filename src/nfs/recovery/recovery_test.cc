#include "nfs/recovery/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/unique_function.h"
#include "testing/held_executor.h"
#include "testing/manual_loop.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::recovery {
namespace {

using stag::testing::HeldExecutor;
using stag::testing::ManualLoop;
using ::testing::HasSubstr;
using vfs::testing::Folder;

const ClientOwner kAnna{"anna", "1:0"};
const ClientOwner kBert{std::string("bert\0'; DROP TABLE clients", 26), "1:0"};

// Files may not grow any more, as on a full disk.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

// A thread of this process.
void wait_until_it_sleeps(int thread) {
  for (std::string state; state != "S"; std::this_thread::yield()) {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string id, name;
    STAG_CHECK(stat >> id >> name >> state);
  }
}

// What is told of the end of a grace period, and what is done meanwhile.
struct ToldEnd final : Recovery::GraceEnd {
  void begin(const Recovery::Owners& owners) override {
    incomplete = owners;
    if (when_begun) when_begun();
  }
  void cut_off() noexcept override {
    is_cut_off = true;
    if (when_cut_off) when_cut_off();
  }
  void spare(const Recovery::Owners& done) noexcept override { spared = done; }

  UniqueFunction<void()> when_begun, when_cut_off;
  Recovery::Owners incomplete, spared;
  bool is_cut_off = false;
};

class Nfs4Recovery : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() / "nfs4-clients.db"; }
  // Another start of the server. The one before has not been ended in any orderly way: whatever it
  // returned Yes for must be there already.
  Recovery& restart(std::uint32_t lease = 90) {
    auto opened = Recovery::open(path(), lease, nullptr);
    STAG_CHECK(opened.ok());
    starts_.push_back(*std::move(opened));
    return *starts_.back();
  }
  Written add(Recovery& recovery, state::ClientId client, const ClientOwner& owner) {
    return loop_.run(recovery.add(client, owner, loop_, nullptr)).value();
  }
  Written remove(Recovery& recovery, state::ClientId client) {
    EXPECT_TRUE(recovery.note_ended(client));
    return loop_.run(recovery.remove_ended(loop_, nullptr)).value();
  }

  void break_records(const std::string& event) {
    on_records("CREATE TRIGGER refuse BEFORE " + event +
               " ON clients BEGIN SELECT RAISE(ABORT, 'no room'); END");
  }
  void repair_records() { on_records("DROP TRIGGER refuse"); }
  void on_records(const std::string& statement) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
  }

  Folder folder_{"/tmp"};
  ManualLoop loop_;
  std::vector<std::unique_ptr<Recovery>> starts_;
};

TEST_F(Nfs4Recovery, is_kept_where_nobody_else_can_read) {
  const auto mode = [&](const std::string& file) {
    return std::filesystem::status(file).permissions();
  };
  constexpr auto kOwnerOnly =
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(add(restart(), 1, kAnna), Written::Yes);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      EXPECT_EQ(mode(entry.path()), kOwnerOnly) << entry.path();
    // As a version before this one made it.
    std::filesystem::permissions(path(), std::filesystem::perms(0644));
  }
}

TEST_F(Nfs4Recovery, the_first_start_knows_nobody) {
  const Recovery& first = restart();
  EXPECT_FALSE(first.anybody_left());
  EXPECT_EQ(first.former_lease(), 0u);
}

TEST_F(Nfs4Recovery, every_start_has_an_epoch_of_its_own) {
  const std::uint32_t first = restart().epoch();
  EXPECT_NE(first, 0u);
  for (std::uint32_t epoch = first + 1; epoch < first + 5; ++epoch)
    EXPECT_EQ(restart().epoch(), epoch);
}

TEST_F(Nfs4Recovery, gives_recorded_clients_alone_the_right_to_reclaim_after_a_restart) {
  EXPECT_EQ(add(restart(100), 7, kAnna), Written::Yes);
  const Recovery& next = restart(50);
  EXPECT_TRUE(next.may_reclaim(kAnna));
  EXPECT_FALSE(next.may_reclaim(kBert));
  EXPECT_FALSE(next.may_reclaim({kAnna.ownerid, "1:1000"}));
  EXPECT_EQ(next.former_lease(), 100u);
}

TEST_F(Nfs4Recovery, any_bytes_are_an_owner) {
  add(restart(), 7, kBert);
  add(*starts_.back(), 8, {"", ""});
  const Recovery& next = restart();
  EXPECT_TRUE(next.may_reclaim(kBert));
  EXPECT_TRUE(next.may_reclaim({"", ""}));
}

TEST_F(Nfs4Recovery, a_client_that_was_removed_may_not_reclaim) {
  Recovery& first = restart();
  add(first, 7, kAnna);
  add(first, 8, kBert);
  EXPECT_EQ(remove(first, 7), Written::Yes);
  EXPECT_FALSE(restart().may_reclaim(kAnna));
  EXPECT_TRUE(starts_.back()->may_reclaim(kBert));
}

TEST_F(Nfs4Recovery, the_record_of_a_new_incarnation_stays_when_the_old_one_goes) {
  Recovery& first = restart();
  add(first, 7, kAnna);
  add(first, 8, kAnna);
  first.remove_later(7);
  EXPECT_TRUE(restart().may_reclaim(kAnna));
}

TEST_F(Nfs4Recovery, claims_that_are_withheld_are_those_of_one_client_who_is_waited_for) {
  add(restart(), 7, kAnna);
  Recovery& next = restart();
  {
    const Recovery::Withheld withheld(next, kAnna, 8);
    EXPECT_FALSE(next.may_reclaim(kAnna));
    EXPECT_FALSE(next.may_reclaim(kAnna, 9));
    EXPECT_TRUE(next.may_reclaim(kAnna, 8));
    const Recovery::Withheld also(next, kAnna, 9);
    EXPECT_FALSE(next.may_reclaim(kAnna, 8));
    EXPECT_TRUE(next.anybody_left());
  }
  EXPECT_TRUE(next.may_reclaim(kAnna));
}

TEST_F(Nfs4Recovery, a_crash_in_grace_leaves_the_records_of_both_starts) {
  add(restart(), 7, kAnna);
  add(*starts_.back(), 8, kBert);
  add(restart(), 1 << 20, kAnna);  // has reclaimed; then the server is killed again
  const Recovery& third = restart();
  EXPECT_TRUE(third.may_reclaim(kAnna));
  EXPECT_TRUE(third.may_reclaim(kBert));
}

TEST_F(Nfs4Recovery,
       gives_a_client_that_missed_the_grace_no_right_to_reclaim_after_the_next_start) {
  add(restart(), 7, kAnna);
  add(*starts_.back(), 8, kBert);
  Recovery& second = restart();
  add(second, 1 << 20, kAnna);
  EXPECT_TRUE(second.remove_former());
  const Recovery& third = restart();
  EXPECT_TRUE(third.may_reclaim(kAnna));
  EXPECT_FALSE(third.may_reclaim(kBert));
}

TEST_F(Nfs4Recovery,
       who_was_not_done_at_the_end_of_grace_alone_may_not_reclaim_after_the_next_start) {
  add(restart(), 7, kAnna);
  add(*starts_.back(), 8, kBert);
  Recovery& second = restart();
  state::GracePeriod period;
  ToldEnd told;
  period.finish_by([&](std::uint64_t number, TimePoint) {
    EXPECT_TRUE(second.finish_grace(period, number, told));
  });
  second.begin_grace(period, loop_.now() + std::chrono::seconds(90));
  add(second, 1 << 20, kAnna);
  add(second, (1 << 20) + 1, kBert);
  second.completed(kBert);
  EXPECT_FALSE(period.active(loop_.now() + std::chrono::seconds(90)));
  EXPECT_TRUE(told.is_cut_off);
  EXPECT_THAT(told.incomplete, ::testing::ElementsAre(kAnna));
  EXPECT_THAT(told.spared, ::testing::IsEmpty());
  const Recovery& third = restart();
  EXPECT_FALSE(third.may_reclaim(kAnna));
  EXPECT_TRUE(third.may_reclaim(kBert));
}

class Nfs4EndOfGrace : public Nfs4Recovery {
 protected:
  // Two clients may reclaim, and the period is due.
  Recovery& due() {
    add(restart(), 7, kAnna);
    add(*starts_.back(), 8, kBert);
    period_.finish_by([&](std::uint64_t number, TimePoint) { number_ = number; });
    restart().begin_grace(period_, loop_.now() + std::chrono::seconds(90));
    EXPECT_TRUE(period_.active(loop_.now() + std::chrono::seconds(90)));
    return *starts_.back();
  }

  state::GracePeriod period_;
  std::uint64_t number_ = 0;
  ToldEnd told_;
};

TEST_F(Nfs4EndOfGrace, spares_whoever_becomes_done_until_all_are_cut_off) {
  Recovery& second = due();
  told_.when_begun = [&] { EXPECT_FALSE(second.completed(kAnna)); };
  told_.when_cut_off = [&] {
    second.completed(kAnna);
    second.completed(kBert);
    second.completed({"somebody else", ""});
  };
  EXPECT_TRUE(second.finish_grace(period_, number_, told_));
  EXPECT_TRUE(told_.is_cut_off);
  EXPECT_THAT(told_.spared, ::testing::ElementsAre(kAnna, kBert));
  EXPECT_FALSE(period_.active());
}

// Nor may the next client ID of one that was ended meanwhile claim what it was ended for.
TEST_F(Nfs4EndOfGrace, that_cannot_be_written_does_not_wait_again_for_whoever_became_done) {
  Recovery& second = due();
  break_records("DELETE");
  told_.when_begun = [&] { second.completed(kAnna); };
  EXPECT_FALSE(second.finish_grace(period_, number_, told_));
  EXPECT_FALSE(told_.is_cut_off);
  EXPECT_FALSE(second.may_reclaim(kAnna));
  EXPECT_TRUE(second.may_reclaim(kBert));
  EXPECT_TRUE(second.completed(kBert)) << "nobody else is left";
}

TEST_F(Nfs4EndOfGrace, leaves_all_as_it_was_where_there_is_no_memory_for_it) {
  Recovery& second = due();
  told_.when_begun = [] { throw std::bad_alloc(); };
  EXPECT_FALSE(second.finish_grace(period_, number_, told_));
  EXPECT_TRUE(second.may_reclaim(kAnna));
  EXPECT_TRUE(restart().may_reclaim(kBert));
}

TEST_F(Nfs4Recovery,
       writes_nothing_of_a_client_that_has_lost_something_or_ended_by_the_time_it_writes) {
  const auto later = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, later);
  const auto anna = std::make_shared<state::Life>(7), bert = std::make_shared<state::Life>(8),
             carl = std::make_shared<state::Life>(9);
  const ClientOwner who_ends{"carl", "1:0"};
  std::vector<Written> results;
  const auto note = [&](Task<Written> task) -> Task<void> {
    results.push_back(co_await std::move(task));
  };
  detach(note((*opened)->add(7, kAnna, loop_, nullptr, anna)));
  detach(note((*opened)->add(8, kBert, loop_, nullptr, bert)));
  detach(note((*opened)->add(9, who_ends, loop_, nullptr, carl)));
  anna->revoking = 1;
  carl->phase = state::Life::Phase::Ended;
  later->run_all();
  loop_.drain();
  EXPECT_THAT(results,
              ::testing::ElementsAre(Written::Forfeited, Written::Yes, Written::Forfeited));
  EXPECT_FALSE(anna->recorded || carl->recorded);
  EXPECT_TRUE(bert->recorded);
  EXPECT_FALSE(restart().may_reclaim(kAnna));
  EXPECT_TRUE(starts_.back()->may_reclaim(kBert));
  EXPECT_FALSE(starts_.back()->may_reclaim(who_ends));
}

TEST_F(Nfs4Recovery, the_last_one_that_is_done_is_known_as_such) {
  add(restart(), 7, kAnna);
  add(*starts_.back(), 8, kBert);
  Recovery& second = restart();
  EXPECT_FALSE(second.completed({"somebody else", ""}));
  EXPECT_FALSE(second.completed(kAnna));
  EXPECT_FALSE(second.completed(kAnna));
  EXPECT_FALSE(second.may_reclaim(kAnna));
  EXPECT_TRUE(second.completed(kBert));
  EXPECT_FALSE(second.anybody_left());
}

TEST_F(Nfs4Recovery, begins_a_grace_period_where_somebody_may_reclaim) {
  state::GracePeriod period;
  restart().begin_grace(period, loop_.now() + std::chrono::seconds(90));
  EXPECT_FALSE(period.active());
  add(*starts_.back(), 7, kAnna);
  restart().begin_grace(period, loop_.now() + std::chrono::seconds(90));
  EXPECT_TRUE(period.active());
  period.nobody_left(loop_.now());
  EXPECT_FALSE(period.active());
}

TEST_F(Nfs4Recovery, a_grace_period_with_a_client_of_version_4_0_takes_its_full_time) {
  state::GracePeriod period;
  add(restart(), 7, kAnna);
  add(*starts_.back(), 8, {"SETCLIENTID:bert", "1:0"});
  restart().begin_grace(period, loop_.now() + std::chrono::seconds(90));
  period.nobody_left(loop_.now());
  EXPECT_TRUE(period.active());
  EXPECT_FALSE(period.active(loop_.now() + std::chrono::seconds(90)));
}

TEST_F(Nfs4Recovery, the_longest_lease_counts_until_its_clients_are_forgotten) {
  add(restart(300), 7, kAnna);
  EXPECT_EQ(restart(50).former_lease(), 300u);
  EXPECT_EQ(restart(50).former_lease(), 300u);
  EXPECT_TRUE(starts_.back()->remove_former());
  EXPECT_EQ(restart(50).former_lease(), 0u);
}

TEST_F(Nfs4Recovery, asks_for_patience_when_too_much_waits_to_be_written) {
  const auto later = std::make_shared<HeldExecutor>();
  later->full = true;
  const auto opened = Recovery::open(path(), 90, later);
  for (state::ClientId client = 7; client < 10; ++client) {
    EXPECT_EQ(add(**opened, client, kAnna), Written::Busy);
  }
  EXPECT_FALSE((*opened)->offload([] {}));
  // What was refused is not kept.
  EXPECT_EQ((*opened)->waiting(), 0u);
}

TEST_F(Nfs4Recovery, writes_together_and_in_order_what_is_asked_for_meanwhile) {
  const auto later = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, later);
  Recovery& first = **opened;
  std::vector<Written> results;
  const auto note = [&](Task<Written> task) -> Task<void> {
    results.push_back(co_await std::move(task));
  };
  detach(note(first.add(7, kAnna, loop_, nullptr)));
  first.remove_later(7);
  detach(note(first.add(8, kBert, loop_, nullptr)));
  EXPECT_EQ(later->held.size(), 3u);
  later->run_all();
  loop_.drain();
  EXPECT_THAT(results, ::testing::ElementsAre(Written::Yes, Written::Yes));
  EXPECT_FALSE(restart().may_reclaim(kAnna));
  EXPECT_TRUE(starts_.back()->may_reclaim(kBert));
}

TEST_F(Nfs4Recovery, a_record_that_the_worker_refuses_to_remove_goes_with_the_next_change) {
  const auto worker = std::make_shared<HeldExecutor>(true);
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  EXPECT_EQ(add(first, 7, kAnna), Written::Yes);
  worker->full = true;
  first.remove_later(7);
  first.remove_again();
  EXPECT_TRUE(first.unremoved());
  worker->full = false;
  EXPECT_EQ(add(first, 8, kBert), Written::Yes);
  EXPECT_FALSE(first.unremoved());
  EXPECT_FALSE(restart().may_reclaim(kAnna));
  EXPECT_TRUE(starts_.back()->may_reclaim(kBert));
}

TEST_F(Nfs4Recovery, a_record_is_removed_again_by_one_job_at_a_time_until_it_is_gone) {
  const auto worker = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  for (state::ClientId client = 7; client < 10; ++client)
    EXPECT_TRUE(first.write({Change::Kind::Add, client, kAnna, nullptr}));
  first.remove_later(7);
  first.remove_later(8);
  first.remove_again();
  EXPECT_EQ(worker->held.size(), 1u);
  worker->give_all_back();
  EXPECT_TRUE(first.unremoved());
  first.remove_again();
  ASSERT_EQ(worker->held.size(), 1u);
  break_records("DELETE");
  worker->run_all();
  EXPECT_TRUE(first.unremoved());
  repair_records();
  first.remove_later(9);
  EXPECT_EQ(worker->held.size(), 1u);
  worker->run_all();
  EXPECT_FALSE(first.unremoved());
  first.remove_again();
  EXPECT_TRUE(worker->held.empty()) << "there is nothing left";
  EXPECT_FALSE(restart().may_reclaim(kAnna));
}

// As while a cluster hangs.
TEST_F(Nfs4Recovery, a_removal_that_waits_for_the_disk_is_not_asked_for_again) {
  const auto worker = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  EXPECT_TRUE(first.write({Change::Kind::Add, 7, kAnna, nullptr}));
  EXPECT_TRUE(first.write({Change::Kind::Add, 8, kBert, nullptr}));
  first.remove_later(7);
  std::atomic<int> id{0};
  std::thread removing;
  // Has the disk as long as it runs.
  first.remove_unneeded([&](state::ClientId) {
    if (removing.joinable()) return true;
    auto jobs = std::exchange(worker->held, {});
    removing = std::thread([&id, job = std::move(jobs.front())]() mutable {
      id = ::gettid();
      job.work();
      job.work = {};
      job.deliver(job.context, std::move(job.done));
    });
    while (id == 0) std::this_thread::yield();
    wait_until_it_sleeps(id);
    first.remove_later(8);
    EXPECT_TRUE(worker->held.empty());
    return true;
  });
  ASSERT_TRUE(removing.joinable());
  removing.join();
  EXPECT_FALSE(first.unremoved()) << "it removed both";
}

// Else the record of one incarnation would let a client claim what it lost as the next one.
TEST_F(Nfs4Recovery, nothing_else_is_written_before_a_record_that_could_not_be_removed_is_gone) {
  Recovery& first = restart();
  add(first, 7, kAnna);
  break_records("DELETE");
  first.remove_later(7);
  EXPECT_TRUE(first.unremoved());
  EXPECT_EQ(add(first, 8, kAnna), Written::Failed);
  repair_records();
  EXPECT_EQ(add(first, 8, kAnna), Written::Yes);
  EXPECT_FALSE(first.unremoved());
  EXPECT_TRUE(first.write({Change::Kind::Forget, 8, kAnna}));
  EXPECT_FALSE(restart().may_reclaim(kAnna));
}

TEST_F(Nfs4Recovery, a_client_that_destroys_itself_loses_its_record_though_not_at_once) {
  const auto worker = std::make_shared<HeldExecutor>(true);
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  EXPECT_EQ(add(first, 7, kAnna), Written::Yes);
  EXPECT_EQ(add(first, 8, kBert), Written::Yes);
  worker->full = true;
  EXPECT_EQ(remove(first, 7), Written::Busy);
  worker->full = false;
  break_records("DELETE");
  EXPECT_EQ(remove(first, 8), Written::Failed);
  repair_records();
  EXPECT_TRUE(first.unremoved());
  first.remove_again();
  EXPECT_FALSE(first.unremoved());
  EXPECT_FALSE(restart().anybody_left());
}

// The job that would have written it is given up when another one has done so.
TEST_F(Nfs4Recovery, a_client_whose_record_was_refused_but_written_loses_it_when_it_ends) {
  const auto worker = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  Written result = Written::Yes;
  const auto note = [&](Task<Written> task) -> Task<void> { result = co_await std::move(task); };
  detach(note(first.add(7, kAnna, loop_, nullptr)));
  EXPECT_TRUE(first.write({Change::Kind::Add, 8, kBert, nullptr}));
  worker->give_all_back();
  loop_.drain();
  EXPECT_EQ(result, Written::Busy);
  EXPECT_TRUE(restart().may_reclaim(kAnna));
  first.remove_later(7);
  worker->run_all();
  EXPECT_FALSE(restart().may_reclaim(kAnna));
}

// Of one whose record went before it ended nothing is left to be written.
TEST_F(Nfs4Recovery, the_end_of_a_client_without_a_record_asks_for_nothing) {
  const auto worker = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  first.remove_later(6);
  EXPECT_TRUE(first.write({Change::Kind::Add, 7, kAnna, nullptr}));
  EXPECT_TRUE(first.write({Change::Kind::Remove, 7, {}, nullptr}));
  EXPECT_TRUE(first.write({Change::Kind::Add, 8, kBert, nullptr}));
  EXPECT_TRUE(first.write({Change::Kind::Forget, 8, kBert, nullptr}));
  first.remove_later(7);
  first.remove_later(8);
  EXPECT_TRUE(worker->held.empty());
  EXPECT_FALSE(first.unremoved());
}

// Or a peer makes clients that cannot be recorded, and ends them, until memory runs out.
TEST_F(Nfs4Recovery, nothing_is_kept_of_a_client_that_could_not_be_recorded) {
  const auto worker = std::make_shared<HeldExecutor>(true);
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  EXPECT_EQ(add(first, 6, kBert), Written::Yes);
  worker->full = true;
  EXPECT_EQ(add(first, 7, kAnna), Written::Busy);
  worker->full = false;
  break_records("INSERT");
  EXPECT_EQ(add(first, 8, kAnna), Written::Failed);
  EXPECT_EQ(add(first, 6, kBert), Written::Failed);
  EXPECT_FALSE(first.note_ended(7));
  EXPECT_FALSE(first.note_ended(8));
  EXPECT_TRUE(first.note_ended(6)) << "which is there";
}

TEST_F(Nfs4Recovery, nothing_is_kept_of_a_client_that_ended_before_it_could_not_be_recorded) {
  const auto worker = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  const auto note = [&](Task<Written> task) -> Task<void> {
    EXPECT_EQ(co_await std::move(task), Written::Failed);
  };
  detach(note(first.add(7, kAnna, loop_, nullptr)));
  EXPECT_TRUE(first.note_ended(7));
  break_records("INSERT");
  worker->run_all();
  loop_.drain();
  EXPECT_FALSE(first.unremoved());
}

TEST_F(Nfs4Recovery, a_client_that_is_recorded_at_the_second_try_loses_its_record_when_it_ends) {
  const auto worker = std::make_shared<HeldExecutor>();
  const auto opened = Recovery::open(path(), 90, worker);
  Recovery& first = **opened;
  std::vector<Written> results;
  const auto note = [&](Task<Written> task) -> Task<void> {
    results.push_back(co_await std::move(task));
  };
  detach(note(first.add(7, kAnna, loop_, nullptr)));
  detach(note(first.add(7, kAnna, loop_, nullptr)));
  auto jobs = std::exchange(worker->held, {});
  ASSERT_EQ(jobs.size(), 2u);
  worker->held.push_back(std::move(jobs[0]));
  worker->give_all_back();
  loop_.drain();
  worker->held.push_back(std::move(jobs[1]));
  worker->run_all();
  loop_.drain();
  EXPECT_THAT(results, ::testing::ElementsAre(Written::Busy, Written::Yes));
  EXPECT_TRUE(first.note_ended(7));
}

// A row whose COMMIT fails may be there after a crash; it is removed when that can be written.
TEST_F(Nfs4Recovery, clients_whose_COMMIT_fails_are_removed_before_others_are_added) {
  Recovery& first = restart();
  EXPECT_EQ(add(first, 6, kBert), Written::Yes);
  const FullDisk full;
  for (state::ClientId client = 7; client < 10; ++client) {
    EXPECT_EQ(add(first, client, kAnna), Written::Failed);
    EXPECT_FALSE(first.unremoved()) << "the one before";
    EXPECT_TRUE(first.note_ended(client)) << "it may be there";
  }
}

TEST_F(Nfs4Recovery, a_file_that_is_no_database_is_one_clear_sentence) {
  std::ofstream(path()) << std::string(4096, 'x');
  const auto opened = Recovery::open(path(), 90, nullptr);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error(), HasSubstr("cannot use the records of NFSv4 clients in " + path()));
  EXPECT_THAT(opened.error(), HasSubstr("restore the file"));
  EXPECT_EQ(opened.error().find('\n'), std::string::npos);
}

TEST_F(Nfs4Recovery, a_folder_that_cannot_be_used_is_one_clear_sentence) {
  const auto opened = Recovery::open(folder_.path() / "missing" / "db", 90, nullptr);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error(), HasSubstr("unable to open database file"));
  EXPECT_THAT(opened.error(), Not(HasSubstr("remove it")));
}

TEST_F(Nfs4Recovery, records_of_a_later_version_are_left_alone) {
  restart();
  starts_.clear();
  on_records("PRAGMA user_version = 2");
  const auto opened = Recovery::open(path(), 90, nullptr);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error(), HasSubstr("of a newer version"));
  EXPECT_THAT(opened.error(), Not(HasSubstr("remove it")));
}

TEST_F(Nfs4Recovery, records_that_another_program_uses_are_not_called_damaged) {
  restart();
  starts_.clear();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto opened = Recovery::open(path(), 90, nullptr);
  sqlite3_close(other);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error(), HasSubstr("database is locked; end the other program"));
}

TEST_F(Nfs4Recovery, says_that_writing_failed_and_writes_again_when_it_can) {
  Recovery& first = restart();
  break_records("INSERT");
  EXPECT_EQ(add(first, 7, kAnna), Written::Failed);
  repair_records();
  EXPECT_EQ(add(first, 7, kAnna), Written::Yes);
  EXPECT_TRUE(restart().may_reclaim(kAnna));
}

}  // namespace
}  // namespace stag::nfs::recovery
