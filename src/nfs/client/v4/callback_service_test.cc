// The program that a server of NFSv4.1 calls back (RFC 8881 section 20).
#include "nfs/client/v4/callback_service.h"

#include <gtest/gtest.h>

#include "rpc/client.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"

namespace stag::nfs::client::nfs4 {
namespace {

// RFC 8881 18.36.3 asks for this version in callbacks, RFC 5662 (the XDR) has version 1.
struct CbCompoundOfVersion4 : v4::CB_COMPOUND {
  static constexpr std::uint32_t version = 4;
};

template <class Procedure>
v4::nfsstat4 answer_to_an_empty_compound() {
  testing::ManualLoop loop;
  CallbackService service;
  testing::LoopbackChannel channel(loop, service.service());
  rpc::Client server(channel);
  const v4::CB_COMPOUND4args args{"", 1, 0, {}};
  const auto answer = loop.run(server.call<Procedure>(args));
  return answer && answer->ok() ? (*answer)->status : v4::NFS4ERR_SERVERFAULT;
}

TEST(CallbackService, answers_by_both_versions_that_the_RFCs_give_the_callback_program) {
  EXPECT_EQ(answer_to_an_empty_compound<v4::CB_COMPOUND>(), v4::NFS4_OK);
  EXPECT_EQ(answer_to_an_empty_compound<CbCompoundOfVersion4>(), v4::NFS4_OK);
}

}  // namespace
}  // namespace stag::nfs::client::nfs4
