// Which owner an open or a lock of version 4.0 has (RFC 7530 9.1.7 to 9.1.11).
#include "nfs/client/v4/owners_v40.h"

#include <gtest/gtest.h>

namespace stag::nfs::client::nfs4 {
namespace {

TEST(OwnersV40, serve_another_open_once_they_are_confirmed) {
  OwnersV40 owners;
  const OwnersV40::Ref first = owners.of_open(1);
  EXPECT_EQ(owners.of_open(1), first);
  EXPECT_NE(owners.of_open(2), first) << "one open at a time";
  first->confirmed = true;
  owners.release(1);
  EXPECT_EQ(owners.of_open(3), first);
  owners.release(2);
  EXPECT_NE(owners.of_open(4)->number, 2u) << "it was never confirmed";
}

TEST(OwnersV40, serve_no_other_open_when_their_number_is_uncertain) {
  OwnersV40 owners;
  const OwnersV40::Ref first = owners.of_open(1);
  first->confirmed = true;
  first->sequence.on_loss();
  owners.release(1);
  EXPECT_NE(owners.of_open(2), first);
  const OwnersV40::Ref second = owners.of_open(2);
  second->confirmed = true;
  owners.renew(2);
  EXPECT_NE(owners.of_open(2), second);
  EXPECT_NE(OwnersV40::name_of(*owners.of_open(2)), OwnersV40::name_of(*second));
}

TEST(OwnersV40, are_few_that_nobody_uses) {
  OwnersV40 owners;
  constexpr OwnersV40::OpenId kMany = OwnersV40::kMostIdle * 2;
  for (OwnersV40::OpenId open = 1; open <= kMany; ++open) owners.of_open(open)->confirmed = true;
  for (OwnersV40::OpenId open = 1; open <= kMany; ++open) owners.release(open);
  EXPECT_EQ(owners.size(), OwnersV40::kMostIdle);
}

TEST(OwnersV40, get_a_new_name_whenever_their_locks_begin) {
  OwnersV40 owners;
  const std::string first = OwnersV40::name_of(*owners.of_locks("me"));
  EXPECT_EQ(owners.name_of("me"), first);
  owners.forget("me");
  EXPECT_EQ(owners.name_of("me"), "me") << "it has no locks, whatever it is called";
  EXPECT_NE(OwnersV40::name_of(*owners.of_locks("me")), first);
  EXPECT_EQ(owners.size(), 1u);
}

}  // namespace
}  // namespace stag::nfs::client::nfs4
