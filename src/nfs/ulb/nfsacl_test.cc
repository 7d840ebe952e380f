#include "nfs/ulb/nfsacl.h"

#include <gtest/gtest.h>

#include "testing/proves.h"

namespace stag::nfs::ulb::acl_test {
namespace {

using namespace nfsacl;
using Entries = std::vector<aclent>;

template <class P>
const rpc::ProcedureBinding* entry() {
  return ulb::nfsacl().find(P::program, P::version, P::number);
}
template <class P>
std::uint32_t encoded_size(const typename P::Results& results) {
  xdr::Encoder encoder;
  P::encode_results(encoder, results);
  return std::move(encoder).finish().size();
}

TEST(NfsaclBinding, keeps_everything_in_the_message) {
  PROVES("R8267-5.2-b");
  for (const std::uint32_t version : {2u, 3u})
    for (std::uint32_t procedure = 0; procedure <= 5; ++procedure) {
      const auto* found = ulb::nfsacl().find(NFS_ACL_PROGRAM, version, procedure);
      if (found == nullptr) continue;
      EXPECT_TRUE(found->arguments.ids().empty());
      EXPECT_TRUE(found->results.ids().empty());
    }
}

TEST(NfsaclBinding, sizes_Replies_without_a_list_by_their_XDR) {
  PROVES("R8267-5.2-c");
  EXPECT_EQ(entry<ACLPROC2_SETACL>(), nullptr) << "nothing but the type bounds it";
  EXPECT_EQ(entry<ACLPROC2_GETATTR>(), nullptr);
  EXPECT_EQ(entry<ACLPROC2_ACCESS>(), nullptr);
  EXPECT_EQ(entry<ACLPROC3_SETACL>(), nullptr);
  ATTR2res attributes;
  attributes.resok() = {};
  ACCESS2res access;
  access.resok() = {};
  SETACL3res set;
  set.resok().attributes_follow = true;
  set.resok().attributes() = {};
  EXPECT_EQ(encoded_size<ACLPROC2_SETACL>(attributes), ACLPROC2_SETACL::max_results_size);
  EXPECT_EQ(encoded_size<ACLPROC2_GETATTR>(attributes), ACLPROC2_GETATTR::max_results_size);
  EXPECT_EQ(encoded_size<ACLPROC2_ACCESS>(access), ACLPROC2_ACCESS::max_results_size);
  EXPECT_EQ(encoded_size<ACLPROC3_SETACL>(set), ACLPROC3_SETACL::max_results_size);
}

TEST(NfsaclBinding, allows_only_GETACL_to_be_retried_with_a_larger_Reply_chunk) {
  PROVES("R8267-5.2-e", "R8267-3.1-e");
  for (const std::uint32_t version : {2u, 3u})
    for (std::uint32_t procedure = 0; procedure <= 5; ++procedure) {
      const auto* found = ulb::nfsacl().find(NFS_ACL_PROGRAM, version, procedure);
      const bool is_getacl = procedure == ACLPROC3_GETACL::number;
      EXPECT_EQ(found != nullptr && found->retry_short_reply, is_getacl) << version << procedure;
    }
  EXPECT_EQ(ACLPROC2_GETACL::number, ACLPROC3_GETACL::number);
}

TEST(NfsaclSent, has_a_mask_even_when_the_list_has_none) {
  const Entries three{{ACL_USER_OBJ, 0, 6}, {ACL_GROUP_OBJ, 0, 5}, {ACL_OTHER_OBJ, 0, 4}};
  const Entries expected{{ACL_USER_OBJ, 500, 6},
                         {ACL_GROUP_OBJ, 600, 5},
                         {ACL_CLASS_OBJ, 0, 5},
                         {ACL_OTHER_OBJ, 0, 4}};
  EXPECT_EQ(sent_acl(three, {500, 600}, 0), expected);
  EXPECT_EQ(received_acl(expected), three);
  EXPECT_TRUE(sent_acl({}, {500, 600}, 0).empty());
}

TEST(NfsaclSent, marks_the_entries_of_a_default_list) {
  const Entries list{{ACL_USER_OBJ, 0, 7},
                     {ACL_USER, 9, 7},
                     {ACL_GROUP_OBJ, 0, 5},
                     {ACL_CLASS_OBJ, 0, 5},
                     {ACL_OTHER_OBJ, 0, 0}};
  const Entries sent = sent_acl(list, {}, NFS_ACL_DEFAULT);
  ASSERT_EQ(sent.size(), 5u);
  EXPECT_EQ(sent[1], (aclent{NFS_ACL_DEFAULT | ACL_USER, 9, 7}));
  EXPECT_EQ(received_acl(sent), list);
}

TEST(NfsaclReceived, is_put_in_order_and_keeps_a_mask_that_says_something) {
  const Entries list{{ACL_OTHER_OBJ, 0, 0},
                     {ACL_CLASS_OBJ, 77, 0x12},
                     {ACL_GROUP_OBJ, 600, 5},
                     {ACL_USER_OBJ, 500, 6}};
  const Entries expected{
      {ACL_USER_OBJ, 0, 6}, {ACL_GROUP_OBJ, 0, 5}, {ACL_CLASS_OBJ, 0, 2}, {ACL_OTHER_OBJ, 0, 0}};
  EXPECT_EQ(received_acl(list), expected);
  EXPECT_TRUE(received_acl({}).empty());
}

}  // namespace
}  // namespace stag::nfs::ulb::acl_test
