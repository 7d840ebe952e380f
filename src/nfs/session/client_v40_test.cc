// RFC 7530 16.33, 16.34: how a client of version 4.0 gets its client ID, and another one.
#include "nfs/session/client_v40.h"

#include <gtest/gtest.h>

namespace stag::nfs::session {
namespace {

v4::SETCLIENTID4res given(v4::clientid4 id) {
  v4::SETCLIENTID4res results;
  results.resok4().clientid = id;
  results.resok4().setclientid_confirm.fill(std::byte{5});
  return results;
}

ClientV40 confirmed_client() {
  ClientV40 client({"owner"});
  client.on_set_clientid(given(7));
  client.on_confirm(v4::NFS4_OK);
  return client;
}

TEST(ClientV40, is_confirmed_with_the_verifier_it_was_given) {
  ClientV40 client({"owner"});
  EXPECT_EQ(client.step(), ClientV40::Step::SetClientid);
  EXPECT_EQ(client.on_set_clientid(given(7)), Fate::Go);
  EXPECT_EQ(client.step(), ClientV40::Step::Confirm);
  EXPECT_EQ(client.confirm().clientid, 7u);
  EXPECT_EQ(client.confirm().setclientid_confirm[0], std::byte{5});
  EXPECT_EQ(client.on_confirm(v4::NFS4_OK), Fate::Go);
  EXPECT_EQ(client.step(), ClientV40::Step::Ready);
}

TEST(ClientV40, begins_again_when_the_server_has_forgotten_it) {
  for (const auto status :
       {v4::NFS4ERR_STALE_CLIENTID, v4::NFS4ERR_STALE_STATEID, v4::NFS4ERR_EXPIRED}) {
    ClientV40 client = confirmed_client();
    EXPECT_EQ(client.on_status(v4::NFS4ERR_NOENT, 1), Fate::Go);
    EXPECT_EQ(client.on_status(status, 1), Fate::Again);
    EXPECT_EQ(client.step(), ClientV40::Step::SetClientid);
  }
}

TEST(ClientV40, stays_when_one_state_alone_has_expired) {
  ClientV40 client = confirmed_client();
  EXPECT_EQ(client.on_status(v4::NFS4ERR_EXPIRED, 1, ClientV40::Of::State), Fate::Go);
  EXPECT_EQ(client.step(), ClientV40::Step::Ready);
  EXPECT_EQ(client.on_status(v4::NFS4ERR_STALE_STATEID, 1, ClientV40::Of::State), Fate::Again);
  client.on_set_clientid(given(8));
  client.on_confirm(v4::NFS4_OK);
  EXPECT_EQ(client.on_status(v4::NFS4ERR_EXPIRED, 1, ClientV40::Of::State), Fate::Again)
      << "a state of the client of before";
}

TEST(ClientV40, keeps_a_client_ID_that_is_newer_than_the_call) {
  ClientV40 client = confirmed_client();
  EXPECT_EQ(client.incarnation(), 1u);
  client.on_status(v4::NFS4ERR_STALE_CLIENTID, 1);
  EXPECT_EQ(client.on_status(v4::NFS4ERR_STALE_CLIENTID, 1), Fate::Again) << "once for both";
  client.on_set_clientid(given(8));
  client.on_confirm(v4::NFS4_OK);
  EXPECT_EQ(client.on_status(v4::NFS4ERR_STALE_STATEID, 1), Fate::Again);
  EXPECT_EQ(client.step(), ClientV40::Step::Ready);
  EXPECT_EQ(client.clientid(), 8u);
}

TEST(ClientV40, names_no_place_for_callbacks_where_it_does_not_listen) {
  EXPECT_EQ(ClientV40({"owner"}).set_clientid().callback.cb_location.na_r_addr, "0.0.0.0.0.0");
}

TEST(ClientV40, says_where_it_listens_for_callbacks) {
  ClientV40 client({"owner"});
  client.listens({{"tcp6", "::1.8.1"}, 77});
  const v4::SETCLIENTID4args args = client.set_clientid();
  EXPECT_EQ(args.callback.cb_location.na_r_netid, "tcp6");
  EXPECT_EQ(args.callback.cb_location.na_r_addr, "::1.8.1");
  EXPECT_EQ(args.callback_ident, 77u);
}

TEST(ClientV40, does_not_hurry_to_a_server_that_forgets_it_every_time) {
  ClientV40 client({"owner"});
  Fate fate = Fate::Again;
  int times = 0;
  while (fate == Fate::Again && ++times < 100) {
    client.on_set_clientid(given(7));
    fate = client.on_confirm(v4::NFS4ERR_STALE_CLIENTID);
  }
  EXPECT_EQ(fate, Fate::Unsteady);
}

TEST(ClientV40, does_not_hurry_to_a_server_that_forgets_it_after_every_claim) {
  ClientV40 client = confirmed_client();
  Fate fate = Fate::Again;
  int times = 0;
  while (fate == Fate::Again && ++times < 100) {
    fate = client.on_status(v4::NFS4ERR_STALE_CLIENTID, client.incarnation());
    client.on_set_clientid(given(7));
    client.on_confirm(v4::NFS4_OK);
    for (const auto status : {v4::NFS4ERR_NO_GRACE, v4::NFS4_OK})
      client.on_status(status, client.incarnation(), ClientV40::Of::Claim);
  }
  EXPECT_EQ(fate, Fate::Unsteady);
}

TEST(ClientV40, waits_when_it_is_asked_to) {
  ClientV40 client({"owner"});
  v4::SETCLIENTID4res busy;
  busy.status = v4::NFS4ERR_DELAY;
  EXPECT_EQ(client.on_set_clientid(busy), Fate::Later);
  EXPECT_EQ(client.step(), ClientV40::Step::SetClientid);
}

}  // namespace
}  // namespace stag::nfs::session
