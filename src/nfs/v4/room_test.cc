// Limits that are reached because of clients whose lease has run out: they make room for others.
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

constexpr Duration kPastLease = 92s;

class Nfs4Room : public Nfs4Served {
 protected:
  explicit Nfs4Room(const Nfs4Options& options = of_all(6)) : Nfs4Served(options) {}
  static Nfs4Options of_all(std::uint32_t states) {
    Nfs4Options options;
    options.states.states = states;
    options.states.shared_out = false;  // they are at one address
    return options;
  }
  // Clients with so many opens each.
  void hold(int clients, int opens) {
    for (int i = 0; i < clients; ++i) {
      set_up_session("client " + std::to_string(++clients_));
      for (int n = 0; n < opens; ++n)
        ASSERT_EQ(create(std::to_string(clients_) + "." + std::to_string(n)).status, v4::NFS4_OK);
    }
  }
  v4::nfsstat4 make_session(const std::string& owner) {
    const auto client = exchange_id(owner);
    const Res made = compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
                                  session_args(client.eir_clientid, client.eir_sequenceid))});
    if (made.status != v4::NFS4_OK) return made.status;
    clientid_ = client.eir_clientid;
    session_ = made.resarray[0].opcreate_session().csr_resok4().csr_sessionid;
    sequenceid_ = 0;
    return reclaim_complete();
  }
  v4::LOCK4res lock(const Opened& file, std::uint64_t offset) {
    v4::LOCK4args args{v4::WRITE_LT, false, offset, 10, {}};
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file.stateid, 0, {clientid_, Rope::copy_of(bytes_of("o"))}};
    return run({putfh(file.handle), op(v4::OP_LOCK, &Op::oplock, args)}).resarray[1].oplock();
  }
  std::uint32_t states() { return context_.gate->files()->states(); }

 private:
  int clients_ = 0;
};

TEST_F(Nfs4Room, is_not_made_by_ending_clients_that_renew) {
  hold(2, 3);
  set_up_session("late");
  EXPECT_EQ(create("file").status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(states(), 6u);
}

TEST_F(Nfs4Room, is_made_for_an_open_by_ending_one_lapsed_client) {
  hold(2, 3);
  loop_.pass(kPastLease);
  set_up_session("late");
  EXPECT_EQ(create("file").status, v4::NFS4_OK);
  EXPECT_EQ(states(), 4u) << "the other one kept what it had";
}

// A client that is told NFS4ERR_DELAY asks again (RFC 8881 15.1.1.3), and is not to hear then that
// another has made the file.
TEST_F(Nfs4Room, is_found_before_a_file_is_made) {
  hold(2, 3);
  const auto status_of_making = [&](v4::createmode4 mode) {
    v4::OPEN4args args = open_args("new", v4::OPEN4_SHARE_ACCESS_BOTH, true);
    args.openhow.how().mode = mode;
    if (mode == v4::EXCLUSIVE4_1) args.openhow.how().ch_createboth().cva_verf.fill(std::byte{1});
    return open(std::move(args)).status;
  };
  set_up_session("late");
  for (const v4::createmode4 mode : {v4::GUARDED4, v4::EXCLUSIVE4_1, v4::UNCHECKED4}) {
    EXPECT_EQ(status_of_making(mode), v4::NFS4ERR_DELAY) << mode;
    EXPECT_EQ(run({putrootfh(), lookup("data"), lookup("new")}).status, v4::NFS4ERR_NOENT) << mode;
  }
  EXPECT_EQ(states(), 6u);
  loop_.pass(kPastLease);
  set_up_session("last");
  EXPECT_EQ(status_of_making(v4::GUARDED4), v4::NFS4_OK);
  EXPECT_EQ(states(), 4u) << "what was reserved for it has gone";
}

TEST_F(Nfs4Room, is_kept_for_an_open_while_its_file_is_made) {
  hold(1, 5);
  state::Files& files = *context_.gate->files();
  const auto life = std::make_shared<state::Life>(77);
  const std::array<std::byte, 4> owner{};
  {
    const state::ReserveResult kept = files.reserve_open(owner, life);
    EXPECT_EQ(kept.limit, state::Limit::None);
    EXPECT_EQ(files.reserve_open(owner, life).limit, state::Limit::All);
    EXPECT_EQ(create("another").status, v4::NFS4ERR_DELAY);
  }
  EXPECT_EQ(create("another").status, v4::NFS4_OK);
}

TEST_F(Nfs4Room, is_made_for_a_lock_by_ending_as_many_lapsed_clients_as_it_takes) {
  hold(5, 1);
  loop_.pass(kPastLease);
  set_up_session("late");
  const Opened file = create("file");
  ASSERT_EQ(file.status, v4::NFS4_OK);
  const v4::LOCK4res locked = lock(file, 0);
  ASSERT_EQ(locked.status, v4::NFS4_OK) << "which takes a stateid and a range";
  EXPECT_EQ(states(), 6u);
  // A range in two: one more, for which nobody has to go.
  EXPECT_EQ(run({putfh(file.handle), op(v4::OP_LOCKU, &Op::oplocku,
                                        {v4::WRITE_LT, 0, locked.resok4().lock_stateid, 4, 2})})
                .status,
            v4::NFS4_OK);
  EXPECT_EQ(states(), 7u);
}

TEST_F(Nfs4Room, is_not_found_for_ever) {
  hold(1, 3);
  loop_.pass(kPastLease);
  hold(1, 3);
  EXPECT_EQ(create("one more").status, v4::NFS4_OK);
  EXPECT_EQ(create("two more").status, v4::NFS4_OK);
  EXPECT_EQ(create("three more").status, v4::NFS4_OK);
  EXPECT_EQ(create("four more").status, v4::NFS4ERR_DELAY) << "now all is its own";
}

TEST_F(Nfs4Room, is_as_much_as_the_server_has_taken_on_since) {
  Nfs4Options now = of_all(1);
  now.clients.clients = now.clients.clients_of_address = 1;
  now.clients.shared_out = false;
  nfs4_.change(now);
  EXPECT_EQ(make_session("another client"), v4::NFS4ERR_DELAY);
  EXPECT_EQ(create("file").status, v4::NFS4_OK);
  EXPECT_EQ(create("another").status, v4::NFS4ERR_DELAY);
  now.clients.clients = now.clients.clients_of_address = now.states.states = 2;
  nfs4_.change(now);
  EXPECT_EQ(create("another").status, v4::NFS4_OK);
  EXPECT_EQ(make_session("another client"), v4::NFS4_OK);
}

class Nfs4RoomOfAddress : public Nfs4Room {
 protected:
  Nfs4RoomOfAddress() : Nfs4Room(of_address()) {}
  static Nfs4Options of_address() {
    Nfs4Options options;
    options.states.states_of_address = 6;
    return options;
  }
};

TEST_F(Nfs4RoomOfAddress, is_made_by_one_that_lapsed_there) {
  hold(2, 3);
  loop_.pass(kPastLease);
  set_up_session("late");
  EXPECT_EQ(create("file").status, v4::NFS4_OK);
  EXPECT_EQ(states(), 4u);
}

class Nfs4RoomForReplies : public Nfs4Room {
 protected:
  Nfs4RoomForReplies() : Nfs4Room(with_caches()) {}
  static Nfs4Options with_caches() {
    Nfs4Options options;
    options.clients.caches = 64 << 10;
    return options;
  }
};

TEST_F(Nfs4RoomForReplies, is_made_by_one_that_lapsed) {
  ASSERT_EQ(create("file").status, v4::NFS4_OK) << "who has nothing ends with its lease";
  int clients = 0;
  while (make_session("client " + std::to_string(clients)) == v4::NFS4_OK) {
    ASSERT_EQ(create("file").status, v4::NFS4_OK);
    ASSERT_LT(++clients, 1000);
  }
  EXPECT_GT(clients, 2);
  EXPECT_EQ(make_session("late"), v4::NFS4ERR_DELAY);
  loop_.pass(kPastLease);
  EXPECT_EQ(make_session("late"), v4::NFS4_OK);
}

}  // namespace
}  // namespace stag::nfs::nfs4
