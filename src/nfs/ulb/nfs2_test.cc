#include "nfs/ulb/nfs2.h"

#include <gtest/gtest.h>

#include <vector>

#include "nfs/proto/nfs2.h"
#include "testing/proves.h"

namespace stag::nfs::ulb {
namespace {

using namespace v2;

template <class P>
const rpc::ProcedureBinding* entry_of() {
  return nfs2().find(P::program, P::version, P::number);
}
template <class P>
rpc::ReplyBound bound(const typename P::Args& args) {
  return entry_of<P>()->reply_bound(&args);
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

TEST(Nfs2Binding, lets_data_and_link_texts_travel_by_chunk) {
  PROVES("R8267-4-a", "R8267-4-b", "R8267-4-c", "R8267-4-d");
  EXPECT_EQ(list(entry_of<NFSPROC_WRITE>()->arguments), std::vector{item::writeargs_data});
  EXPECT_EQ(list(entry_of<NFSPROC_SYMLINK>()->arguments), std::vector{item::symlinkargs_to});
  EXPECT_EQ(list(entry_of<NFSPROC_READ>()->results), std::vector{item::readok_data});
  EXPECT_EQ(list(entry_of<NFSPROC_READLINK>()->results), std::vector{item::linktext_data});
}

TEST(Nfs2Binding, keeps_everything_else_in_the_message_and_asks_for_no_retry) {
  PROVES("R8267-4-e", "R8267-3.1-e");
  std::size_t eligible = 0;
  for (std::uint32_t procedure = 0; procedure <= NFSPROC_STATFS::number; ++procedure) {
    const auto* found = nfs2().find(NFS_PROGRAM, NFS_VERSION, procedure);
    if (found == nullptr) continue;
    eligible += found->arguments.ids().size() + found->results.ids().size();
    EXPECT_FALSE(found->retry_short_reply) << procedure;
  }
  EXPECT_EQ(eligible, 4u);
}

TEST(Nfs2Binding, knows_the_path_of_a_SYMLINK_by_its_position_before_the_attributes) {
  PROVES("R8267-4-b");
  symlinkargs args;
  args.from.name = "name";
  args.to = "target";
  xdr::Encoder encoder(entry_of<NFSPROC_SYMLINK>()->arguments.ids());
  NFSPROC_SYMLINK::encode_args(encoder, args);
  const xdr::Stream stream = std::move(encoder).finish();
  ASSERT_EQ(stream.items().size(), 1u);
  // Handle, name, and the length of the path; behind it come eight words of attributes.
  EXPECT_EQ(stream.items()[0].position, 32 + 8 + 4u);
  EXPECT_EQ(stream.items()[0].length, 6u);
  EXPECT_EQ(stream.size(), 44 + 8 + 32u);
}

TEST(Nfs2Binding, bounds_READ_and_READLINK_exactly) {
  PROVES("R8267-3-b", "R8267-4.1-a");
  readres res;
  res.reply().data = Rope::copy_of(bytes_of(std::string(1001, 'd')));
  EXPECT_EQ(bound<NFSPROC_READ>({{}, 0, 1001, 0}).items[0].max_length, 1001u);
  EXPECT_EQ(bound<NFSPROC_READ>({{}, 0, 1001, 0}).total_max(), encoded_size<NFSPROC_READ>(res));
  EXPECT_EQ(bound<NFSPROC_READ>({{}, 0, 0xffffffff, 0}).total_max(),
            NFSPROC_READ::max_results_size.value());
  EXPECT_EQ(bound<NFSPROC_READLINK>({}).total_max(), NFSPROC_READLINK::max_results_size.value());
}

TEST(Nfs2Binding, bounds_a_listing_by_its_count) {
  PROVES("R8267-3-c", "R8267-4.1-a");
  EXPECT_EQ(bound<NFSPROC_READDIR>({{}, {}, 4096}).payload_max, 4 + 4096 + 8u);
  EXPECT_EQ(bound<NFSPROC_READDIR>({{}, {}, 0xffffffff}).payload_max, 4 + 8192 + 8u);
  // The shortest answer fits whatever the count is.
  EXPECT_GE(bound<NFSPROC_READDIR>({{}, {}, 0}).payload_max, encoded_size<NFSPROC_READDIR>({}));
}

TEST(Nfs2Binding, takes_every_other_bound_from_the_protocol_definition) {
  PROVES("R8267-4.1-a");
  // RFC 1094: status 4, attributes 68, handle 32 bytes.
  EXPECT_EQ(NFSPROC_GETATTR::max_results_size, 72u);
  EXPECT_EQ(NFSPROC_SETATTR::max_results_size, 72u);
  EXPECT_EQ(NFSPROC_WRITE::max_results_size, 72u);
  EXPECT_EQ(NFSPROC_LOOKUP::max_results_size, 104u);
  EXPECT_EQ(NFSPROC_CREATE::max_results_size, 104u);
  EXPECT_EQ(NFSPROC_MKDIR::max_results_size, 104u);
  EXPECT_EQ(NFSPROC_SYMLINK::max_results_size, 4u);
  EXPECT_EQ(NFSPROC_STATFS::max_results_size, 24u);
}

TEST(Nfs2Binding, marks_what_must_not_run_twice) {
  for (const std::uint32_t procedure : {2u, 9u, 10u, 11u, 12u, 13u, 14u, 15u})
    EXPECT_TRUE(nfs2().find(100003, 2, procedure)->non_idempotent) << procedure;
  for (const std::uint32_t procedure : {5u, 6u, 8u, 16u})
    EXPECT_FALSE(nfs2().find(100003, 2, procedure)->non_idempotent) << procedure;
}

}  // namespace
}  // namespace stag::nfs::ulb
