// An export is removed while clients hold something of its files: what has its files open is wanted
// back, and given back though its filehandles are stale. So is what a client has of an export that
// does not admit it any more.
#include "nfs/export/client_names.h"
#include "nfs/v4/administration.h"
#include "testing/held_executor.h"
#include "testing/nfs/nfs40_callbacks_fixture.h"
#include "testing/nfs/nfs4_delegations_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

template <class Fixture>
class Removing : public Fixture {
 protected:
  using Res = v4::COMPOUND4res;

  // /data as before, or without it. Another export comes and goes each time.
  void serve(bool data, bool read_only = false) {
    ExportOptions open;
    open.root_squash = false;
    open.read_only = read_only;
    Exports exports;
    if (data) STAG_CHECK(exports.add(1, {"/data", this->store_, open}).ok());
    const std::uint32_t another = ++others_;
    STAG_CHECK(
        exports.add(another, {"/" + std::to_string(another), this->fixed_store_, open}).ok());
    this->context_.exports.replace(std::move(exports));
    this->context_.gate->exports_replaced();
  }
  void remove() { serve(false); }
  // /data as before, to these clients and with these options.
  void serve_to(std::string_view clients, std::string_view words) {
    const ExportOptions options = *parse_export_options(words);
    Exports exports;
    STAG_CHECK(
        exports.add(1, {"/data", this->store_, options, {*make_client_rule(clients, options)}})
            .ok());
    this->context_.exports.replace(std::move(exports));
    this->context_.gate->exports_replaced();
  }

  std::vector<state::StateInfo> states() {
    state::StateCursor at;
    state::StatePage page;
    std::vector<state::StateInfo> all;
    for (bool more = true; more;) {
      more = this->nfs4_.administration().states(at, {}, page);
      all.insert(all.end(), page.rows().begin(), page.rows().end());
    }
    return all;
  }
  static Op return_op(const v4::stateid4& stateid) {
    return op(v4::OP_DELEGRETURN, &Op::opdelegreturn, v4::DELEGRETURN4args{stateid});
  }
  static Op close_op(const v4::stateid4& stateid, std::uint32_t seqid = 0) {
    return op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{seqid, stateid});
  }
  static Op unlock_op(const v4::stateid4& stateid) {
    v4::LOCKU4args args;
    args.locktype = v4::WRITE_LT;
    args.lock_stateid = stateid;
    args.length = 10;
    return op(v4::OP_LOCKU, &Op::oplocku, args);
  }

 private:
  std::uint32_t others_ = 10;
};

class Nfs4RemovedExport : public Removing<Nfs4DelegationsServed> {
 protected:
  v4::stateid4 read_delegation() {
    const v4::open_delegation4 given = open_for(kForReading);
    EXPECT_EQ(given.delegation_type, v4::OPEN_DELEGATE_READ);
    close({v4::NFS4_OK, opened_, handle_});
    return given.delegation_type == v4::OPEN_DELEGATE_READ ? given.read().stateid : v4::stateid4{};
  }
  Opened locked(v4::stateid4& lock) {
    const Opened file = create("locked");
    v4::LOCK4args args;
    args.locktype = v4::WRITE_LT;
    args.length = 10;
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file.stateid, 0, {clientid_, Rope::copy_of(bytes_of("locker"))}};
    const Res results = run({putfh(file.handle), op(v4::OP_LOCK, &Op::oplock, std::move(args))});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    lock = results.resarray[1].oplock().resok4().lock_stateid;
    return file;
  }
};

TEST_F(Nfs4RemovedExport,
       has_its_delegations_recalled_and_given_back_though_its_handles_are_stale) {
  const v4::stateid4 delegation = read_delegation();
  remove();
  loop_.pass(100ms);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(holder_client_.recall(0).stateid, delegation);
  EXPECT_EQ(holder_client_.recall(0).fh, handle_);
  EXPECT_EQ(run(return_ops(delegation)).status, v4::NFS4ERR_STALE);
  EXPECT_TRUE(states().empty());
  loop_.pass(3s);
  EXPECT_EQ(holder_client_.asked.size(), 1u) << "it is over";
}

// As Linux's client gives one back.
TEST_F(Nfs4RemovedExport, gets_back_what_is_returned_behind_a_GETATTR) {
  const v4::stateid4 delegation = read_delegation();
  remove();
  EXPECT_EQ(run({putfh(handle_), getattr({1u << v4::FATTR4_CHANGE}), return_op(delegation)}).status,
            v4::NFS4ERR_STALE);
  EXPECT_TRUE(states().empty());
}

TEST_F(Nfs4RemovedExport, has_the_delegations_revoked_that_are_not_given_back_within_a_lease) {
  read_delegation();
  remove();
  for (int i = 0; i < 80; ++i) {
    EXPECT_EQ(status_flags(), 0u) << i;
    loop_.pass(1s);
  }
  EXPECT_EQ(states().at(0).revoked, state::Status::Ok);
  for (int i = 0; i < 12; ++i) {
    status_flags();
    loop_.pass(1s);
  }
  EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
  EXPECT_EQ(states().at(0).revoked, state::Status::DelegRevoked);
}

TEST_F(Nfs4RemovedExport, is_another_one_than_those_that_stay_of_which_nothing_is_recalled) {
  read_delegation();
  for (const bool read_only : {true, false}) {
    serve(true, read_only);
    loop_.pass(2s);
  }
  EXPECT_TRUE(holder_client_.asked.empty());
  EXPECT_FALSE(states().at(0).recalled);
}

// An OPEN that began before: its Call has the exports of before.
TEST_F(Nfs4RemovedExport, gives_no_delegation_to_an_OPEN_that_was_in_progress) {
  bool removed = false;
  holder_client_.on_probe = [&] {
    removed = true;
    remove();
  };
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
  EXPECT_TRUE(removed);
  ASSERT_EQ(states().size(), 1u);
  EXPECT_EQ(states()[0].type, state::StateInfo::Type::Open);
}

TEST_F(Nfs4RemovedExport, has_locks_and_opens_given_up_by_who_is_told_that_it_is_stale) {
  act_as(other_);
  v4::stateid4 lock;
  const Opened file = locked(lock);
  remove();
  EXPECT_EQ(run({putfh(file.handle), unlock_op(lock)}).status, v4::NFS4ERR_STALE);
  ASSERT_EQ(states().size(), 2u);
  for (const state::StateInfo& each : states()) EXPECT_TRUE(each.ranges.empty());
  EXPECT_EQ(run({putfh(file.handle), close_op(file.stateid)}).status, v4::NFS4ERR_STALE);
  EXPECT_TRUE(states().empty());
}

// Neither another client nor another file's handle gives anything back.
TEST_F(Nfs4RemovedExport, keeps_what_others_say_that_they_give_back) {
  const v4::stateid4 delegation = read_delegation();
  const Opened file = create("another");
  const std::size_t held = states().size();
  remove();
  EXPECT_EQ(run({putfh(file.handle), return_op(delegation)}).status, v4::NFS4ERR_STALE);
  as(other_, [&] { return run({putfh(handle_), return_op(delegation)}).status; });
  as(other_, [&] { return run({putfh(file.handle), close_op(file.stateid)}).status; });
  EXPECT_EQ(states().size(), held);
}

TEST_F(Nfs4RemovedExport, is_shown_with_its_former_path_until_it_is_there_again) {
  create("held");
  const Administration admin = nfs4_.administration();
  const state::FileKey file = states().at(0).file;
  EXPECT_TRUE(admin.is_served(file));
  EXPECT_FALSE(admin.was_removed("/data"));
  remove();
  remove();
  EXPECT_EQ(admin.export_of(file), "/data");
  EXPECT_FALSE(admin.is_served(file));
  EXPECT_FALSE(admin.is_served("/data"));
  EXPECT_TRUE(admin.was_removed("/data"));
  serve(true);
  EXPECT_EQ(admin.export_of(file), "/data");
  EXPECT_TRUE(admin.is_served(file));
  EXPECT_TRUE(admin.is_served("/data"));
  EXPECT_FALSE(admin.was_removed("/data"));
}

// The clients of these tests call from 192.0.2.1, with AUTH_SYS.
class Nfs4ExcludedClient : public Nfs4RemovedExport {
 protected:
  // A client with a lock, an open and a delegation gives all of it back where /data is served so.
  void give_back(std::string_view clients, std::string_view words, v4::nfsstat4 refused) {
    const v4::stateid4 delegation = read_delegation();
    v4::stateid4 lock;
    const Opened file = locked(lock);
    const std::size_t held = states().size();
    serve_to(clients, words);
    EXPECT_EQ(run({putfh(file.handle), unlock_op(lock)}).status, refused);
    EXPECT_EQ(states().size(), held);
    for (const state::StateInfo& each : states()) EXPECT_TRUE(each.ranges.empty());
    EXPECT_EQ(run({putfh(file.handle), getattr({1u << v4::FATTR4_CHANGE}), close_op(file.stateid)})
                  .status,
              refused);
    EXPECT_EQ(states().size(), held - 2);
    EXPECT_EQ(run({putfh(handle_), return_op(delegation)}).status, refused);
    EXPECT_EQ(states().size(), held - 3);
  }
};

TEST_F(Nfs4ExcludedClient, gives_back_what_it_has_of_an_export_for_others) {
  give_back("10.0.0.0/8", "rw", v4::NFS4ERR_ACCESS);
}

TEST_F(Nfs4ExcludedClient, gives_back_what_it_has_of_an_export_of_other_flavors) {
  give_back("*", "rw,sec=krb5", v4::NFS4ERR_WRONGSEC);
}

TEST_F(Nfs4ExcludedClient, takes_nothing_of_others_and_gets_nothing_done_besides) {
  v4::stateid4 lock;
  const Opened file = locked(lock);
  serve_to("10.0.0.0/8", "rw");
  const std::size_t held = states().size();
  as(other_, [&] { return run({putfh(file.handle), close_op(file.stateid)}).status; });
  EXPECT_EQ(states().size(), held);
  EXPECT_EQ(run({putfh(file.handle), read_op(file.stateid, 0, 1), close_op(file.stateid)}).status,
            v4::NFS4ERR_ACCESS);
  EXPECT_EQ(states().size(), held);
}

// /data is for names by now, and nobody says what the client's is.
class Nfs4UndecidedClient : public Nfs4RemovedExport {
 protected:
  ~Nfs4UndecidedClient() override { names_->give_all_back(); }
  void serve_to_names() {
    struct NoNames final : HostNameService {
      Texts names_of(const std::string&) override { return Failure{NoAnswer{}}; }
      Texts addresses_of(const std::string&) override { return Failure{NoAnswer{}}; }
      Result<std::string, NoAnswer> domain() override { return Failure{NoAnswer{}}; }
      Result<bool, NoAnswer> is_member(const std::string&, const std::string&) override {
        return Failure{NoAnswer{}};
      }
      Result<bool, NoAnswer> has_netgroup(const std::string&) override {
        return Failure{NoAnswer{}};
      }
    };
    const ExportOptions options;
    ClientRule rule = *make_client_rule("*.example", options);
    rule.names = std::make_shared<ClientNames>(std::make_shared<NoNames>(), names_);
    Exports exports;
    STAG_CHECK(exports.add(1, {"/data", store_, options, {rule}}).ok());
    context_.exports.replace(std::move(exports));
    context_.gate->exports_replaced();
  }

  const std::shared_ptr<HeldExecutor> names_ = std::make_shared<HeldExecutor>();
};

TEST_F(Nfs4UndecidedClient, gives_a_delegation_back_and_keeps_what_can_wait) {
  const v4::stateid4 delegation = read_delegation();
  v4::stateid4 lock;
  const Opened file = locked(lock);
  const std::size_t held = states().size();
  serve_to_names();
  EXPECT_EQ(run({putfh(file.handle), unlock_op(lock)}).status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(run({putfh(file.handle), close_op(file.stateid)}).status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(states().size(), held);
  EXPECT_EQ(run({putfh(handle_), getattr({1u << v4::FATTR4_CHANGE}), return_op(delegation)}).status,
            v4::NFS4ERR_DELAY);
  EXPECT_EQ(states().size(), held - 1);
}

TEST_F(Nfs4UndecidedClient, keeps_its_delegation_for_as_long_as_it_comes_again) {
  read_delegation();
  serve_to_names();
  context_.gate->recall(states().at(0).file, state::Touch::Write);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(run({putfh(handle_), read_op({}, 0, 1)}).status, v4::NFS4ERR_DELAY) << i;
    loop_.pass(10s);
  }
  EXPECT_EQ(states().at(0).revoked, state::Status::Ok);
  for (int i = 0; i < 35; ++i) {
    status_flags();
    loop_.pass(1s);
  }
  EXPECT_EQ(states().at(0).revoked, state::Status::DelegRevoked);
}

TEST_F(Nfs4UndecidedClient, keeps_others_out_by_its_delegation_for_five_minutes_more_at_most) {
  read_delegation();
  serve_to_names();
  context_.gate->recall(states().at(0).file, state::Touch::Write);
  const auto comes_again = [&] {
    EXPECT_EQ(run({putfh(handle_), read_op({}, 0, 1)}).status, v4::NFS4ERR_DELAY);
    loop_.pass(10s);
    return states().at(0).revoked;
  };
  state::Status revoked = state::Status::Ok;
  int times = 0;
  while (revoked == state::Status::Ok && times < 60) revoked = comes_again(), ++times;
  EXPECT_EQ(revoked, state::Status::DelegRevoked);
  EXPECT_GT(times, 30);
}

class Nfs40RemovedExport : public Removing<Nfs40CallbacksServed> {
 protected:
  // A delegation of one file, and of another one an open with a lock.
  void hold() {
    const v4::open_delegation4 given = open_again(v4::OPEN4_SHARE_ACCESS_READ);
    ASSERT_EQ(given.delegation_type, v4::OPEN_DELEGATE_READ);
    delegation_ = given.read().stateid;
    second_ = open_file(1, "second", "another owner");
    lock_ = lock_stateid(lock(second_, 3, 0, "locker"));
  }
  auto held() { return std::ranges::count(states(), holder_, &state::StateInfo::clientid); }

  v4::stateid4 delegation_{};
  Opened second_;
  v4::stateid4 lock_{};
};

TEST_F(Nfs40RemovedExport, gets_back_what_clients_without_sessions_have) {
  hold();
  remove();
  loop_.pass(100ms);
  EXPECT_EQ(listener_.asked.size(), 1u);
  EXPECT_EQ(held(), 4);
  EXPECT_EQ(give_back(delegation_).status, v4::NFS4ERR_STALE);
  EXPECT_EQ(held(), 3);
  EXPECT_EQ(unlock(second_, lock_, 1).status, v4::NFS4ERR_STALE);
  for (const state::StateInfo& each : states()) EXPECT_TRUE(each.ranges.empty());
  EXPECT_EQ(close(second_, 4).status, v4::NFS4ERR_STALE);
  EXPECT_EQ(held(), 1);
  serve(true);
  EXPECT_EQ(open_raw(4, "second", "another owner").status, v4::NFS4_OK) << "it is in step";
}

TEST_F(Nfs40RemovedExport, gets_back_what_clients_without_sessions_have_that_it_excludes) {
  hold();
  serve_to("10.0.0.0/8", "rw");
  EXPECT_EQ(give_back(delegation_).status, v4::NFS4ERR_ACCESS);
  EXPECT_EQ(held(), 3);
  EXPECT_EQ(unlock(second_, lock_, 1).status, v4::NFS4ERR_ACCESS);
  for (const state::StateInfo& each : states()) EXPECT_TRUE(each.ranges.empty());
  EXPECT_EQ(close(second_, 4).status, v4::NFS4ERR_ACCESS);
  EXPECT_EQ(held(), 1);
}

}  // namespace
}  // namespace stag::nfs::nfs4
