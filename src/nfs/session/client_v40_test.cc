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
  for (const auto status : {v4::NFS4ERR_STALE_CLIENTID, v4::NFS4ERR_EXPIRED}) {
    ClientV40 client = confirmed_client();
    EXPECT_EQ(client.on_status(v4::NFS4ERR_NOENT), Fate::Go);
    EXPECT_EQ(client.on_status(status), Fate::Again);
    EXPECT_EQ(client.step(), ClientV40::Step::SetClientid);
  }
}

TEST(ClientV40, gives_a_server_up_that_forgets_it_every_time) {
  ClientV40 client({"owner"});
  Fate fate = Fate::Again;
  int times = 0;
  while (fate == Fate::Again && ++times < 100) {
    client.on_set_clientid(given(7));
    fate = client.on_confirm(v4::NFS4ERR_STALE_CLIENTID);
  }
  EXPECT_EQ(fate, Fate::Broken);
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
