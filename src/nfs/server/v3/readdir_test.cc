#include <gtest/gtest.h>

#include <map>
#include <set>

#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v3;

class Nfs3Listing : public testing::NfsServerTest {
 protected:
  void fill(const nfs_fh3& dir, int files) {
    for (int i = 0; i < files; ++i) create(dir, "file" + std::to_string(i));
  }
  // Bytes of the resok structure of the last Reply: without RPC header and status.
  std::uint32_t resok_size() const {
    return channel_.last_reply.size() - oncrpc::kReplyHeaderSize - 4;
  }
  READDIR3res readdir(const nfs_fh3& dir, std::uint32_t count, std::uint64_t cookie = 0,
                      const cookieverf3& verifier = {}) {
    return call<NFSPROC3_READDIR>({dir, cookie, verifier, count});
  }
  READDIRPLUS3res readdirplus(const nfs_fh3& dir, std::uint32_t dircount, std::uint32_t maxcount,
                              std::uint64_t cookie = 0, const cookieverf3& verifier = {}) {
    return call<NFSPROC3_READDIRPLUS>({dir, cookie, verifier, dircount, maxcount});
  }
};
class Nfs3Readdirplus : public Nfs3Listing {};

TEST_F(Nfs3Listing, has_every_name_once_whatever_the_page_size) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  fill(dir, 50);
  for (const std::uint32_t count : {160u, 500u, 4096u, 1u << 20}) {
    std::multiset<std::string> names;
    std::uint64_t cookie = 0;
    cookieverf3 verifier{};
    for (bool eof = false; !eof;) {
      const auto res = readdir(dir, count, cookie, verifier);
      ASSERT_EQ(res.status, NFS3_OK);
      EXPECT_LE(resok_size(), count);
      for (const entry3& entry : res.resok().reply.entries) {
        names.insert(entry.name);
        EXPECT_NE(entry.fileid, 0u);
        EXPECT_NE(entry.cookie, 0u);
        cookie = entry.cookie;
      }
      verifier = res.resok().cookieverf;
      eof = res.resok().reply.eof;
      ASSERT_TRUE(eof || !res.resok().reply.entries.empty());
    }
    EXPECT_EQ(names.size(), 52u) << count;
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), 52u);
    EXPECT_TRUE(names.contains(".") && names.contains("..") && names.contains("file49"));
  }
}

// The rest of a listing of either kind, one Reply after the other.
template <class Next>
std::multiset<std::string> whole_listing(Next next) {
  std::multiset<std::string> names;
  std::uint64_t cookie = 0;
  cookieverf3 verifier{};
  for (bool eof = false; !eof;) {
    const auto res = next(cookie, verifier);
    EXPECT_EQ(res.status, NFS3_OK);
    if (res.status != NFS3_OK || (res.resok().reply.entries.empty() && !res.resok().reply.eof))
      break;
    for (const auto& entry : res.resok().reply.entries) {
      names.insert(entry.name);
      cookie = entry.cookie;
    }
    verifier = res.resok().cookieverf;
    eof = res.resok().reply.eof;
  }
  return names;
}

TEST_F(Nfs3Listing, is_cut_to_the_longest_Reply_of_the_transport) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  fill(dir, 50);
  for (const bool chunk : {false, true}) {
    channel_.reply_room = chunk ? rpc::ReplyRoom{.inline_max = 200, .chunk_max = 700}
                                : rpc::ReplyRoom{.inline_max = 700, .chunk_max = 0};
    const auto plain = whole_listing([&](std::uint64_t cookie, const cookieverf3& verifier) {
      const auto res = readdir(dir, 8192, cookie, verifier);
      EXPECT_LE(channel_.last_reply.size(), 700u);
      return res;
    });
    EXPECT_EQ(plain.size(), 52u);
    const auto plus = whole_listing([&](std::uint64_t cookie, const cookieverf3& verifier) {
      const auto res = readdirplus(dir, 8192, 8192, cookie, verifier);
      EXPECT_LE(channel_.last_reply.size(), 700u);
      return res;
    });
    EXPECT_EQ(plus.size(), 52u);
  }
  channel_.reply_room = {.inline_max = 100, .chunk_max = 0};
  EXPECT_EQ(readdir(dir, 8192).status, NFS3ERR_TOOSMALL);
  EXPECT_EQ(readdirplus(dir, 8192, 8192).status, NFS3ERR_TOOSMALL);
}

TEST_F(Nfs3Listing, fills_its_count_to_the_last_byte) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  // 104 bytes for an empty list, 28 each for "." and "..".
  EXPECT_EQ(readdir(dir, 160).resok().reply.entries.size(), 2u);
  EXPECT_EQ(resok_size(), 160u);
  EXPECT_TRUE(readdir(dir, 160).resok().reply.eof);
  const auto shorter = readdir(dir, 159);
  EXPECT_EQ(shorter.resok().reply.entries.size(), 1u);
  EXPECT_FALSE(shorter.resok().reply.eof);
}

TEST_F(Nfs3Listing, returns_TOOSMALL_when_no_entry_fits) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  for (const std::uint32_t count : {0u, 103u, 131u}) {
    const auto res = readdir(dir, count);
    EXPECT_EQ(res.status, NFS3ERR_TOOSMALL) << count;
    EXPECT_TRUE(res.resfail().dir_attributes.attributes_follow);
    EXPECT_EQ(readdirplus(dir, 4096, count).status, NFS3ERR_TOOSMALL) << count;
  }
}

TEST_F(Nfs3Listing, is_empty_behind_its_end) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  const auto all = readdir(dir, 4096);
  const auto rest =
      readdir(dir, 4096, all.resok().reply.entries.back().cookie, all.resok().cookieverf);
  ASSERT_EQ(rest.status, NFS3_OK);
  EXPECT_TRUE(rest.resok().reply.entries.empty());
  EXPECT_TRUE(rest.resok().reply.eof);
}

TEST_F(Nfs3Listing, is_refused_for_objects_that_cannot_be_listed) {
  const nfs_fh3 file = create(root(), "file");
  const nfs_fh3 closed = mkdir(root(), "closed", 0700);
  EXPECT_EQ(readdir(file, 4096).status, NFS3ERR_NOTDIR);
  EXPECT_EQ(readdirplus(file, 4096, 4096).status, NFS3ERR_NOTDIR);
  EXPECT_EQ(readdir(nfs_fh3{}, 4096).status, NFS3ERR_BADHANDLE);
  as(1000, 1000);
  EXPECT_EQ(readdir(closed, 4096).status, NFS3ERR_ACCES);
}

TEST_F(Nfs3Readdirplus, returns_what_LOOKUP_and_GETATTR_would) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  fill(dir, 3);
  const auto res = readdirplus(dir, 4096, 8192);
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_TRUE(res.resok().reply.eof);
  EXPECT_EQ(res.resok().reply.entries.size(), 5u);
  for (const entryplus3& entry : res.resok().reply.entries) {
    const auto found = call<NFSPROC3_LOOKUP>({{dir, entry.name}});
    ASSERT_TRUE(entry.name_handle.handle_follows) << entry.name;
    EXPECT_EQ(entry.name_handle.handle(), found.resok().object);
    EXPECT_EQ(entry.name_attributes, found.resok().obj_attributes);
    EXPECT_EQ(entry.fileid, entry.name_attributes.attributes().fileid);
  }
}

TEST_F(Nfs3Readdirplus, keeps_to_both_counts) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  fill(dir, 50);
  for (const std::uint32_t maxcount : {320u, 1000u, 4096u, 1u << 20}) {
    std::map<std::string, int> names;
    std::uint64_t cookie = 0;
    cookieverf3 verifier{};
    for (bool eof = false; !eof;) {
      const auto res = readdirplus(dir, 1 << 20, maxcount, cookie, verifier);
      ASSERT_EQ(res.status, NFS3_OK) << maxcount;
      EXPECT_LE(resok_size(), maxcount);
      for (const entryplus3& entry : res.resok().reply.entries) ++names[entry.name];
      cookie = res.resok().reply.entries.empty() ? cookie : res.resok().reply.entries.back().cookie;
      verifier = res.resok().cookieverf;
      eof = res.resok().reply.eof;
    }
    EXPECT_EQ(names.size(), 52u);
    for (const auto& [name, times] : names) EXPECT_EQ(times, 1) << name;
  }
  // 28 bytes of names, ids and cookies for each of "." and "..", 28 for "file0".
  EXPECT_EQ(readdirplus(dir, 56, 65536).resok().reply.entries.size(), 2u);
  EXPECT_EQ(readdirplus(dir, 1, 65536).resok().reply.entries.size(), 1u);
}

TEST_F(Nfs3Listing, travels_in_the_message_also_when_it_is_large) {
  PROVES("R8267-4-e");
  const nfs_fh3 dir = mkdir(root(), "dir");
  fill(dir, 200);
  channel_.reduce = true;
  EXPECT_EQ(readdirplus(dir, 1 << 20, 1 << 20).resok().reply.entries.size(), 202u);
  EXPECT_TRUE(channel_.last_reply.items().empty());
}

}  // namespace
}  // namespace stag::nfs
