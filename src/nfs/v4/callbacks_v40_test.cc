// Callbacks of version 4.0: this server connects to where a client listens (RFC 7530 10.2, 16.33;
// RFC 8167 3.1; RFC 8267 6.5.1), and delegations of such clients.
#include <set>

#include "nfs/v4/administration.h"
#include "nfs/v4/callback/back_channel.h"
#include "nfs/v4/callback/callback_address.h"
#include "nfs/v4/callback/callback_connections.h"
#include "testing/nfs/nfs40_callbacks_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

class Nfs40Callbacks : public Nfs40CallbacksServed {
 protected:
  using Nfs40CallbacksServed::Nfs40CallbacksServed;
  // Whether the client gets a delegation when it says this of its callbacks.
  bool delegates(const v4::cb_client4& callback) {
    callback_ = callback;
    set_up_client("the holder");
    const v4::open_delegation4 delegation = open_again();
    if (delegation.delegation_type == v4::OPEN_DELEGATE_NONE) return false;
    EXPECT_EQ(give_back(delegation.write().stateid).status, v4::NFS4_OK);
    return true;
  }
  static std::string name_of(std::size_t client) { return "client " + std::to_string(client); }
  // What a client of this name gets with a file of the same name.
  v4::open_delegation_type4 new_client_opens(const std::string& name) {
    client_ = set_up_client(name);
    open_file(1, name, "owner");
    const Res opened = run({putrootfh(), lookup("data"), open_op(3, name, "owner")});
    return opened.resarray.at(2).opopen().resok4().delegation.delegation_type;
  }
};

TEST_F(Nfs40Callbacks, connect_to_the_TCP_address_that_a_client_on_RDMA_names) {
  channel_.origin().transport = rpc::TransportKind::Rdma;
  set_up_client("the holder");
  EXPECT_TRUE(network_.connected_to.empty()) << "nothing is sent before it is needed";
  EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  ASSERT_EQ(network_.connected_to.size(), 1u);
  EXPECT_EQ(network_.connected_to[0], (Address{"192.0.2.1", 2049}));
  EXPECT_EQ(listener_.probes, 1) << "CB_NULL goes before the first delegation";
}

TEST_F(Nfs40Callbacks, are_shown_to_an_administrator_as_far_as_they_are_known) {
  const auto shown = [&](v4::clientid4 client) {
    return std::string(nfs4_.administration().client(client, loop_.now())->callbacks);
  };
  EXPECT_EQ(shown(other_), "none") << "it named no address";
  EXPECT_EQ(shown(holder_), "unknown") << "nobody has asked it yet";
  ASSERT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(shown(holder_), "up");
  network_.cut = true;
  other_opens();
  loop_.pass(2s);
  EXPECT_EQ(shown(holder_), "down") << "the recall was lost";
}

TEST_F(Nfs40Callbacks, give_no_delegation_with_an_open_that_is_to_be_confirmed) {
  const Res first = open_raw(1, "file", "a new owner");
  ASSERT_EQ(first.status, v4::NFS4_OK);
  EXPECT_EQ(first.resarray[2].opopen().resok4().delegation.delegation_type, v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs40Callbacks, recall_a_delegation_on_that_connection) {
  PROVES("R8267-6.5.1-a");
  const v4::open_delegation4 write = open_again();
  ASSERT_EQ(write.delegation_type, v4::OPEN_DELEGATE_WRITE);
  gives_back();
  EXPECT_EQ(other_opens(), v4::NFS4_OK) << "it was given back in time";
  ASSERT_EQ(listener_.asked.size(), 1u);
  EXPECT_EQ(listener_.asked[0].minorversion, 0u);
  EXPECT_EQ(listener_.asked[0].callback_ident, 77u);
  ASSERT_EQ(listener_.asked[0].argarray.size(), 1u) << "there is no CB_SEQUENCE";
  EXPECT_EQ(listener_.recall(0).stateid, write.write().stateid);
  EXPECT_EQ(listener_.recall(0).fh, file_.handle);
  EXPECT_EQ(network_.connected_to.size(), 1u) << "the connection of the probe";
  EXPECT_FALSE(network_.reduced);
}

TEST_F(Nfs40Callbacks, go_with_the_credential_that_the_client_made_itself_known_with) {
  as(17, 18);
  callback_ident_ = 78;
  client_ = set_up_client("a user");
  open_file(1, "another", "owner");
  ASSERT_EQ(run({putrootfh(), lookup("data"), open_op(3, "another", "owner")})
                .resarray[2]
                .opopen()
                .resok4()
                .delegation.delegation_type,
            v4::OPEN_DELEGATE_WRITE);
  as_other([&] { return open_raw(others_next_++, "another", "other").status; });
  ASSERT_EQ(listener_.callers.size(), 1u);
  EXPECT_EQ(listener_.callers[0].uid, 17u);
  EXPECT_EQ(listener_.callers[0].gid, 18u);
}

TEST_F(Nfs40Callbacks, ask_the_holder_for_the_size_of_its_file) {
  PROVES("R8267-6.5.1-a");
  ASSERT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  listener_.change = 1'000'000;
  listener_.size = 4711;
  const Res seen = as_other([&] {
    return run({putfh(file_.handle), getattr({1u << v4::FATTR4_SIZE})});
  });
  ASSERT_EQ(seen.status, v4::NFS4_OK);
  ASSERT_EQ(listener_.asked.size(), 1u);
  EXPECT_EQ(listener_.asked[0].argarray[0].argop, v4::OP_CB_GETATTR);
  const Buffer values = seen.resarray[1].opgetattr().resok4().obj_attributes.attr_vals.flatten();
  EXPECT_EQ(load_be<std::uint64_t>(values.bytes().data()), 4711u);
  EXPECT_FALSE(network_.reduced);
}

TEST_F(Nfs40Callbacks, use_the_delegation_and_take_it_back) {
  const v4::stateid4 stateid = open_again().write().stateid;
  EXPECT_EQ(
      run({putfh(file_.handle), write_op(stateid, 0, "hello"), read_op(stateid, 0, 5)}).status,
      v4::NFS4_OK);
  EXPECT_EQ(give_back(stateid).status, v4::NFS4_OK);
  EXPECT_EQ(give_back(stateid).status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(other_opens(), v4::NFS4_OK);
  EXPECT_TRUE(listener_.asked.empty());
}

// In this version its stateid alone says that it is the holder (RFC 7530 9.1.4.6). Linux asks for
// attributes in front of DELEGRETURN.
TEST_F(Nfs40Callbacks, do_not_go_to_who_uses_the_delegation_itself) {
  const v4::stateid4 stateid = open_again().write().stateid;
  v4::SETATTR4args mode;
  mode.stateid = stateid;
  mode.obj_attributes.attrmask = {0, 1u << (v4::FATTR4_MODE - 32)};
  mode.obj_attributes.attr_vals = Rope::copy_of(std::as_bytes(std::span("\0\0\1\240", 4)));
  EXPECT_EQ(run({putfh(file_.handle), op(v4::OP_SETATTR, &Op::opsetattr, mode)}).status,
            v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file_.handle), getattr({1u << v4::FATTR4_SIZE}),
                 op(v4::OP_DELEGRETURN, &Op::opdelegreturn, v4::DELEGRETURN4args{stateid})})
                .status,
            v4::NFS4_OK);
  EXPECT_TRUE(listener_.asked.empty());
}

// A delegation is given back by its stateid alone.
TEST_F(Nfs40Callbacks, give_no_delegation_back_for_who_guesses) {
  const v4::stateid4 stateid = open_again().write().stateid;
  client_ = other_;
  v4::stateid4 guess{0, open_file(9, "elsewhere", "a new owner").stateid.other};
  for (const std::size_t at : {2u, 4u, 6u, 8u}) {
    const auto own = load_be<std::uint32_t>(guess.other.data() + at);
    for (std::uint32_t more = 0; more < 1024; ++more) {
      store_be(guess.other.data() + at, own + more - 512);
      if (more != 512) {
        ASSERT_EQ(give_back(guess).status, v4::NFS4ERR_BAD_STATEID) << at << ", " << more;
      }
    }
    store_be(guess.other.data() + at, own);
  }
  client_ = holder_;
  EXPECT_EQ(run({putfh(file_.handle), write_op(stateid, 0, "hello")}).status, v4::NFS4_OK);
  EXPECT_EQ(give_back(stateid).status, v4::NFS4_OK) << "it is there still";
}

TEST_F(Nfs40Callbacks, give_no_delegation_after_a_failure_until_they_are_tried_again) {
  PROVES("R8167-3.1-b");
  network_.reachable = false;
  EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_NONE);
  network_.reachable = true;
  EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_NONE);
  EXPECT_EQ(network_.connected_to.size(), 1u) << "not at every OPEN";
  EXPECT_EQ(pass_and_renew(60s), v4::NFS4_OK) << "it has no delegation that could be lost";
  EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
}

TEST_F(Nfs40Callbacks, connect_to_no_other_host_and_to_no_service_that_clients_do_not_make) {
  EXPECT_FALSE(delegates(listening_at("192.0.2.99.8.1")));
  EXPECT_FALSE(delegates(listening_at("127.0.0.1.8.1")));
  EXPECT_FALSE(delegates(listening_at("192.0.2.1.0.0"))) << "no port";
  EXPECT_FALSE(delegates(listening_at("192.0.2.1.8.1", "udp")));
  EXPECT_FALSE(delegates(listening_at("192.0.2.1.8", "tcp")));
  EXPECT_FALSE(delegates(listening_at("stag.example.8.1")));
  EXPECT_FALSE(delegates({}));
  v4::cb_client4 mount = listening_at("192.0.2.1.8.1");
  mount.cb_program = 100005;
  EXPECT_FALSE(delegates(mount));
  EXPECT_TRUE(network_.connected_to.empty());
  EXPECT_TRUE(delegates(listening_at("::ffff:192.0.2.1.8.1", "tcp6"))) << "the same address";
}

TEST_F(Nfs40Callbacks, connect_to_the_networks_that_are_allowed) {
  const CallbackNetworks networks({*IpNetwork::parse("198.51.100.0/24")});
  const auto at = [&](const char* address) {
    return callback_address(listening_at(address), "192.0.2.1", networks);
  };
  EXPECT_EQ(at("198.51.100.7.8.1"), (Address{"198.51.100.7", 2049}));
  EXPECT_EQ(at("203.0.113.7.8.1"), std::nullopt);
  EXPECT_EQ(at("192.0.2.1.8.1"), (Address{"192.0.2.1", 2049}));
}

TEST_F(Nfs40Callbacks, connect_to_what_is_named_after_its_network_was_allowed) {
  const v4::cb_client4 elsewhere = listening_at("198.51.100.7.8.1");
  EXPECT_FALSE(delegates(elsewhere));
  Nfs4Options now;
  now.callback_networks.push_back(*IpNetwork::parse("198.51.100.0/24"));
  nfs4_.change(now);
  EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_NONE) << "that was refused";
  EXPECT_TRUE(delegates(elsewhere));
  nfs4_.change({});
  const v4::open_delegation4 delegation = open_again();
  ASSERT_EQ(delegation.delegation_type, v4::OPEN_DELEGATE_WRITE) << "it goes on with what it has";
  EXPECT_EQ(give_back(delegation.write().stateid).status, v4::NFS4_OK);
  EXPECT_FALSE(delegates(elsewhere));
}

TEST_F(Nfs40Callbacks, are_reported_down_by_RENEW_until_they_work_again) {
  ASSERT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  network_.cut = true;
  network_.reachable = false;
  EXPECT_EQ(other_opens(), v4::NFS4ERR_DELAY);
  EXPECT_EQ(renew(holder_), v4::NFS4ERR_CB_PATH_DOWN);
  EXPECT_EQ(renew(other_), v4::NFS4_OK) << "it holds none";
  EXPECT_EQ(network_.open, 0) << "a connection on which a Call was lost is not used again";
  network_.cut = false;
  network_.reachable = true;
  loop_.pass(1s);
  EXPECT_EQ(listener_.asked.size(), 1u) << "the recall is repeated";
  EXPECT_EQ(renew(holder_), v4::NFS4_OK);
}

TEST_F(Nfs40Callbacks, are_looked_after_while_the_client_holds_a_delegation) {
  ASSERT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  network_.cut = true;
  EXPECT_EQ(pass_and_renew(60s), v4::NFS4_OK) << "nobody knows yet";
  EXPECT_EQ(pass_and_renew(1s), v4::NFS4ERR_CB_PATH_DOWN);
  EXPECT_EQ(give_back(v4::stateid4{}).status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs40Callbacks, go_to_the_address_that_was_confirmed_last) {
  ASSERT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  callback_ = listening_at("192.0.2.1.8.2");
  const v4::SETCLIENTID4resok changed = setclientid("the holder");
  EXPECT_EQ(other_opens(), v4::NFS4ERR_DELAY);
  EXPECT_EQ(network_.connected_to.size(), 1u) << "it is not confirmed yet";
  ASSERT_EQ(run({op(v4::OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm,
                    {changed.clientid, changed.setclientid_confirm})})
                .status,
            v4::NFS4_OK);
  EXPECT_EQ(pass_and_renew(1s), v4::NFS4_OK);
  ASSERT_EQ(network_.connected_to.size(), 2u);
  EXPECT_EQ(network_.connected_to[1].port, 2050);
  loop_.pass(2s);
  EXPECT_EQ(network_.open, 1) << "the former connection is closed";
}

TEST_F(Nfs40Callbacks, are_down_when_the_client_names_nothing_that_can_be_called) {
  ASSERT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  callback_ = {};
  ASSERT_EQ(set_up_client("the holder"), holder_);
  EXPECT_EQ(renew(holder_), v4::NFS4ERR_CB_PATH_DOWN);
}

TEST_F(Nfs40Callbacks, have_a_delegation_revoked_after_a_lease_without_its_return) {
  const v4::stateid4 stateid = open_again().write().stateid;
  EXPECT_EQ(other_opens(), v4::NFS4ERR_DELAY);
  EXPECT_EQ(listener_.asked.size(), 1u);
  for (int i = 0; i < 3; ++i) pass_and_renew(31s);
  EXPECT_EQ(other_opens(), v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file_.handle), read_op(stateid, 0, 1)}).status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(run({putfh(file_.handle), read_op(file_.stateid, 0, 1)}).status,
            v4::NFS4ERR_OLD_STATEID)
      << "its opens stay";
}

TEST_F(Nfs40Callbacks, keep_no_connection_that_nobody_uses) {
  const v4::stateid4 stateid = open_again().write().stateid;
  EXPECT_EQ(network_.open, 1);
  EXPECT_EQ(give_back(stateid).status, v4::NFS4_OK);
  for (int i = 0; i < 5; ++i) pass_and_renew(30s);
  EXPECT_EQ(network_.open, 0);
  EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
}

TEST_F(Nfs40Callbacks, end_with_their_client) {
  ASSERT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(network_.open, 1);
  callback_ = {};
  set_up_client("the holder", 2);
  loop_.pass(2s);
  EXPECT_EQ(network_.open, 0);
}

TEST_F(Nfs40Callbacks, take_few_connections_to_one_address) {
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(new_client_opens(name_of(i)), v4::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(network_.connected_to.size(), 20u);
  EXPECT_EQ(network_.open, 16) << "those that were idle for longest made room";
}

TEST_F(Nfs40Callbacks, that_find_no_connection_are_logged_with_client_export_operation_and_limit) {
  constexpr std::size_t kMost = CallbackConnections::kOfClientAddress;
  // The last one's connection takes the place of the first one's.
  for (std::size_t i = 0; i <= kMost; ++i)
    ASSERT_EQ(new_client_opens(name_of(i)), v4::OPEN_DELEGATE_WRITE);
  const v4::clientid4 first = set_up_client(name_of(0));
  const auto recalls = [&](std::size_t i) {
    return as_other([&] { return open_raw(others_next_++, name_of(i), "other").status; });
  };
  network_.silent = true;
  static std::set<std::string> told;  // some of them more than once
  told.clear();
  set_trace_sink([](Reason reason, std::string_view where, std::string_view detail) {
    if (reason == Reason::CallbacksTooMany)
      told.insert(std::string(where) + ": " + std::string(detail));
  });
  for (std::size_t i = 1; i <= kMost; ++i) EXPECT_EQ(recalls(i), v4::NFS4ERR_DELAY);
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(recalls(0), v4::NFS4ERR_DELAY);
  const auto line = [](v4::clientid4 client, const std::string& what) {
    return "192.0.2.1: client " + std::to_string(client) + ", " + what +
           " to 192.0.2.1:2049: the limit of its address";
  };
  EXPECT_EQ(told, std::set{line(first, "export /data, CB_RECALL")});
  EXPECT_EQ(new_client_opens("one more"), v4::OPEN_DELEGATE_NONE);
  set_trace_sink(nullptr);
  EXPECT_TRUE(told.contains(line(client_, "CB_NULL")));
  network_.release();
}

TEST_F(Nfs40Callbacks, whose_first_answer_many_wait_for_are_waited_for_by_no_more) {
  network_.silent = true;
  for (std::size_t i = 0; i <= BackChannel::kAskers; ++i) {
    const TimePoint before = loop_.now();
    EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_NONE);
    EXPECT_EQ(loop_.now() == before, i == BackChannel::kAskers) << i << " waited in vain";
  }
  EXPECT_EQ(network_.connected_to.size(), 1u);
  network_.release();
  loop_.pass(1s);
  EXPECT_EQ(open_again().delegation_type, v4::OPEN_DELEGATE_WRITE);
}

TEST_F(Nfs40Callbacks, wait_while_a_client_is_asked_much_at_once) {
  const v4::stateid4 stateid = open_again().write().stateid;
  listener_.statuses = {v4::NFS4ERR_BADHANDLE, v4::NFS4ERR_DELAY};
  EXPECT_EQ(other_opens(), v4::NFS4ERR_DELAY);
  loop_.pass(1s);
  loop_.pass(1s);
  EXPECT_EQ(listener_.asked.size(), 3u) << "the OPEN's Reply may be on its way";
  EXPECT_EQ(give_back(stateid).status, v4::NFS4_OK);
  EXPECT_EQ(other_opens(), v4::NFS4_OK);
}

}  // namespace
}  // namespace stag::nfs::nfs4
