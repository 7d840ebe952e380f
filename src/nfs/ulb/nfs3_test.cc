#include "nfs/ulb/nfs3.h"

#include <gtest/gtest.h>

#include <vector>

#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "testing/proves.h"

namespace stag::nfs::ulb {
namespace {

using namespace v3;

template <class P>
const rpc::ProcedureBinding* entry() {
  return nfs3().find(P::program, P::version, P::number);
}
template <class P>
rpc::ReplyBound bound(const typename P::Args& args) {
  return entry<P>()->reply_bound(&args);
}
std::vector<xdr::ItemId> list(const rpc::EligibleItems& items) {
  return {items.ids().begin(), items.ids().end()};
}
template <class P>
std::uint32_t encoded_size(const typename P::Results& results) {
  xdr::Encoder encoder;
  P::encode_results(encoder, results);
  return std::move(encoder).finish().size();
}
post_op_attr attributes() {
  post_op_attr attr;
  attr.attributes_follow = true;
  attr.attributes().type = NF3REG;
  return attr;
}

TEST(Nfs3Binding, lets_the_data_of_WRITE_and_the_path_of_SYMLINK_travel_by_chunk) {
  PROVES("R8267-4-a", "R8267-4-b");
  EXPECT_EQ(list(entry<NFSPROC3_WRITE>()->arguments), std::vector{item::WRITE3args_data});
  EXPECT_EQ(list(entry<NFSPROC3_SYMLINK>()->arguments),
            std::vector{item::symlinkdata3_symlink_data});
}

TEST(Nfs3Binding, lets_the_data_of_READ_and_the_path_of_READLINK_travel_by_chunk) {
  PROVES("R8267-4-c", "R8267-4-d");
  EXPECT_EQ(list(entry<NFSPROC3_READ>()->results), std::vector{item::READ3resok_data});
  EXPECT_EQ(list(entry<NFSPROC3_READLINK>()->results), std::vector{item::READLINK3resok_data});
}

TEST(Nfs3Binding, keeps_everything_else_in_the_message) {
  PROVES("R8267-4-e");
  std::size_t eligible = 0;
  for (std::uint32_t procedure = 0; procedure <= NFSPROC3_COMMIT::number; ++procedure) {
    const auto* found = nfs3().find(NFSPROC3_READ::program, NFSPROC3_READ::version, procedure);
    if (found == nullptr) continue;
    eligible += found->arguments.ids().size() + found->results.ids().size();
  }
  EXPECT_EQ(eligible, 4u);
  for (std::uint32_t procedure = 0; procedure <= mount3::MOUNTPROC3_EXPORT::number; ++procedure) {
    const auto* found = mount3().find(mount3::MOUNTPROC3_MNT::program, 3, procedure);
    if (found == nullptr) continue;
    EXPECT_TRUE(found->arguments.ids().empty());
    EXPECT_TRUE(found->results.ids().empty());
  }
}

// The parts of an encoded message that may move under a binding.
template <class T, class Encode>
std::vector<xdr::Item> movable(const rpc::EligibleItems& eligible, const T& value, Encode encode) {
  xdr::Encoder encoder(eligible.ids());
  encode(encoder, value);
  const xdr::Stream stream = std::move(encoder).finish();
  std::vector<xdr::Item> items;
  for (const xdr::Item& item : stream.items())
    if (item.id != xdr::kNoItem) items.push_back(item);
  return items;
}

TEST(Nfs3Binding, lets_the_data_inside_an_arm_move_and_never_the_union) {
  PROVES("R8166-3.4.4.3-a", "R8166-3.4.4.3-b");
  const auto& read = entry<NFSPROC3_READ>()->results;
  READ3res ok;
  ok.resok().count = 1001;
  const std::string bytes(1001, 'd');
  ok.resok().data = Rope::copy_of(bytes_of(bytes));
  READ3res failed;
  failed.status = NFS3ERR_IO;
  failed.resfail() = {};
  const auto data = movable(read, ok, NFSPROC3_READ::encode_results);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].length, 1001u);
  // Before it, and inline: status, no attributes, count, eof, length of the data.
  EXPECT_EQ(data[0].position, 5 * 4u);
  EXPECT_TRUE(movable(read, failed, NFSPROC3_READ::encode_results).empty());

  const auto& readlink = entry<NFSPROC3_READLINK>()->results;
  READLINK3res link;
  link.resok().data = "target";
  const auto text = movable(readlink, link, NFSPROC3_READLINK::encode_results);
  ASSERT_EQ(text.size(), 1u);
  EXPECT_EQ(text[0].length, 6u);
  EXPECT_EQ(text[0].position, 3 * 4u);
  READLINK3res no_link;
  no_link.status = NFS3ERR_INVAL;
  no_link.resfail() = {};
  EXPECT_TRUE(movable(readlink, no_link, NFSPROC3_READLINK::encode_results).empty());
}

TEST(Nfs3Binding, never_asks_for_a_larger_Reply_chunk) {
  PROVES("R8267-3.1-e");
  for (std::uint32_t procedure = 0; procedure <= NFSPROC3_COMMIT::number; ++procedure) {
    const auto* found = nfs3().find(NFSPROC3_READ::program, NFSPROC3_READ::version, procedure);
    EXPECT_FALSE(found != nullptr && found->retry_short_reply) << procedure;
  }
}

TEST(Nfs3Binding, bounds_a_READ_by_its_count) {
  PROVES("R8267-3-b", "R8267-4.1-a");
  const std::string data(1001, 'd');
  READ3res res;
  res.resok().file_attributes = attributes();
  res.resok().count = 1001;
  res.resok().data = Rope::copy_of(bytes_of(data));
  const rpc::ReplyBound predicted = bound<NFSPROC3_READ>({{}, 0, 1001});
  ASSERT_EQ(predicted.items.size(), 1u);
  EXPECT_EQ(predicted.items[0].item, item::READ3resok_data);
  EXPECT_EQ(predicted.items[0].max_length, 1001u);
  EXPECT_EQ(predicted.total_max(), encoded_size<NFSPROC3_READ>(res));
}

TEST(Nfs3Binding, bounds_a_READLINK_by_the_longest_link_text) {
  READLINK3res res;
  res.resok().symlink_attributes = attributes();
  res.resok().data = std::string(kMaxLinkText, 'l');
  EXPECT_EQ(bound<NFSPROC3_READLINK>({}).total_max(), encoded_size<NFSPROC3_READLINK>(res));
}

TEST(Nfs3Binding, bounds_a_listing_by_its_count) {
  PROVES("R8267-3-c", "R8267-4.1-a");
  // The status stands before the structure that the count limits, in which Linux's server does not
  // count the directory's attributes and the verifier.
  const std::uint32_t before = 4 + (4 + 84) + 8;
  EXPECT_EQ(bound<NFSPROC3_READDIR>({{}, 0, {}, 8192}).payload_max, before + 8192u);
  EXPECT_EQ(bound<NFSPROC3_READDIR>({{}, 0, {}, 8190}).payload_max, before + 8192u);
  EXPECT_EQ(bound<NFSPROC3_READDIRPLUS>({{}, 0, {}, 512, 65536}).payload_max, before + 65536u);
}

TEST(Nfs3Binding, bounds_a_tiny_count_by_the_shortest_answer) {
  READDIR3res empty;
  empty.resok().dir_attributes = attributes();
  READDIR3res error;
  error.status = NFS3ERR_TOOSMALL;
  error.resfail().dir_attributes = attributes();
  const std::uint32_t predicted = bound<NFSPROC3_READDIR>({{}, 0, {}, 1}).payload_max;
  EXPECT_GE(predicted, encoded_size<NFSPROC3_READDIR>(error));
  EXPECT_EQ(predicted, encoded_size<NFSPROC3_READDIR>(empty));
}

TEST(Nfs3Binding, survives_the_largest_counts_a_program_can_ask_for) {
  const std::uint32_t most = 0xffffffff;
  EXPECT_LT(bound<NFSPROC3_READDIR>({{}, 0, {}, most}).payload_max, 0x80000000u);
  EXPECT_EQ(bound<NFSPROC3_READ>({{}, 0, most}).items[0].max_length, most);
}

TEST(Nfs3Binding, takes_every_other_bound_from_the_protocol_definition) {
  PROVES("R8267-4.1-a");
  // RFC 1813: status 4, fattr3 84, nfs_fh3 68, wcc_data 116 bytes at most.
  EXPECT_EQ(NFSPROC3_NULL::max_results_size, 0u);
  EXPECT_EQ(NFSPROC3_GETATTR::max_results_size, 88u);
  EXPECT_EQ(NFSPROC3_SETATTR::max_results_size, 120u);
  EXPECT_EQ(NFSPROC3_LOOKUP::max_results_size, 248u);
  EXPECT_EQ(NFSPROC3_ACCESS::max_results_size, 96u);
  EXPECT_EQ(NFSPROC3_WRITE::max_results_size, 136u);
  EXPECT_EQ(NFSPROC3_CREATE::max_results_size, 280u);
  EXPECT_EQ(NFSPROC3_MKDIR::max_results_size, 280u);
  EXPECT_EQ(NFSPROC3_SYMLINK::max_results_size, 280u);
  EXPECT_EQ(NFSPROC3_MKNOD::max_results_size, 280u);
  EXPECT_EQ(NFSPROC3_REMOVE::max_results_size, 120u);
  EXPECT_EQ(NFSPROC3_RMDIR::max_results_size, 120u);
  EXPECT_EQ(NFSPROC3_RENAME::max_results_size, 236u);
  EXPECT_EQ(NFSPROC3_LINK::max_results_size, 208u);
  EXPECT_EQ(NFSPROC3_FSSTAT::max_results_size, 144u);
  EXPECT_EQ(NFSPROC3_FSINFO::max_results_size, 140u);
  EXPECT_EQ(NFSPROC3_PATHCONF::max_results_size, 116u);
  EXPECT_EQ(NFSPROC3_COMMIT::max_results_size, 128u);
}

TEST(Nfs3Binding, marks_what_must_not_run_twice) {
  // RFC 1813 4.5: repeated, these fail or do something else.
  for (const std::uint32_t procedure : {2u, 8u, 9u, 10u, 11u, 12u, 13u, 14u, 15u})
    EXPECT_TRUE(nfs3().find(100003, 3, procedure)->non_idempotent) << procedure;
  for (const std::uint32_t procedure : {5u, 6u, 7u, 16u, 17u})
    EXPECT_FALSE(nfs3().find(100003, 3, procedure)->non_idempotent) << procedure;
}

}  // namespace
}  // namespace stag::nfs::ulb
