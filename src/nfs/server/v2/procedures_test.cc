// NFS version 2 and MOUNT versions 1 and 2, called through whole RPC messages.
#include "nfs/server/v2/procedures.h"

#include <gtest/gtest.h>

#include "base/reason.h"
#include "nfs/proto/nfs2.h"
#include "testing/held_executor.h"
#include "testing/nfs/faulty_store.h"
#include "testing/nfs/one_name.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v2;

const sattr kKeep{0xffffffff,
                  0xffffffff,
                  0xffffffff,
                  0xffffffff,
                  {0xffffffff, 0xffffffff},
                  {0xffffffff, 0xffffffff}};

sattr with_mode(std::uint32_t mode) {
  sattr attributes = kKeep;
  attributes.mode = mode;
  return attributes;
}
sattr with_size(std::uint32_t size) {
  sattr attributes = kKeep;
  attributes.size = size;
  return attributes;
}

class Nfs2 : public testing::NfsServerTest {
 protected:
  fhandle mounted2(const std::string& path) {
    const auto res = call<mount3::MOUNTPROC1_MNT>(path);
    EXPECT_EQ(res.status, 0u) << path;
    return res.status == 0 ? res.directory() : fhandle{};
  }
  fhandle root2() { return mounted2("/data"); }

  diropres made(const fhandle& dir, const std::string& name, std::uint32_t mode = 0644) {
    return call<NFSPROC_CREATE>({{dir, name}, with_mode(mode)});
  }
  fhandle file(const std::string& name) {
    const diropres res = made(root2(), name);
    EXPECT_EQ(res.status, NFS_OK) << name;
    return res.status == NFS_OK ? res.diropok().file : fhandle{};
  }
  attrstat write2(const fhandle& file, std::uint32_t offset, std::string_view text) {
    return call<NFSPROC_WRITE>({file, 0, offset, 0, Rope::copy_of(bytes_of(text))});
  }
  fattr attributes(const fhandle& file) {
    const attrstat res = call<NFSPROC_GETATTR>(file);
    EXPECT_EQ(res.status, NFS_OK);
    return res.status == NFS_OK ? res.attributes() : fattr{};
  }
  diropres found(const std::string& name) { return call<NFSPROC_LOOKUP>({root2(), name}); }
  // Version 3's handle of the same object, for what version 2 cannot do.
  v3::nfs_fh3 wide(const fhandle& handle) {
    v3::nfs_fh3 wide;
    STAG_CHECK(wide.data.assign(handle));
    return wide;
  }
  std::vector<std::string> names(const fhandle& dir, std::uint32_t count) {
    std::vector<std::string> names;
    nfscookie cookie{};
    for (;;) {
      const readdirres res = call<NFSPROC_READDIR>({dir, cookie, count});
      EXPECT_EQ(res.status, NFS_OK);
      if (res.status != NFS_OK) return names;
      EXPECT_LE(channel_.last_reply.rope().size(), oncrpc::kReplyHeaderSize + 4 + count);
      for (const entry& entry : res.readdirok().entries) names.push_back(entry.name);
      if (res.readdirok().eof) return names;
      cookie = res.readdirok().entries.back().cookie;
    }
  }
};

TEST_F(Nfs2, keeps_what_is_written_and_gives_it_back) {
  const fhandle it = file("file");
  const attrstat wrote = write2(it, 3, "hello");
  ASSERT_EQ(wrote.status, NFS_OK);
  EXPECT_EQ(wrote.attributes().size, 8u);
  const readres read = call<NFSPROC_READ>({it, 2, 100, 0});
  ASSERT_EQ(read.status, NFS_OK);
  EXPECT_EQ(text(read.reply().data), std::string("\0hello", 6));
  EXPECT_EQ(read.reply().attributes.size, 8u);
  EXPECT_EQ(text(call<NFSPROC_READ>({it, 8, 1, 0}).reply().data), "");
  EXPECT_EQ(call<NFSPROC_READ>({root2(), 0, 1, 0}).status, NFSERR_ISDIR);
}

TEST_F(Nfs2, moves_its_data_and_link_texts_apart_from_the_message_as_well) {
  PROVES("R8267-4-a", "R8267-4-b", "R8267-4-c", "R8267-4-d");
  channel_.reduce = true;
  const fhandle it = file("file");
  const std::string data(5001, 'd');
  ASSERT_EQ(write2(it, 0, data).status, NFS_OK);
  EXPECT_LT(channel_.last_call.size(), 200u);
  EXPECT_EQ(text(call<NFSPROC_READ>({it, 0, 8192, 0}).reply().data), data);
  // The attributes follow the path.
  ASSERT_EQ(call<NFSPROC_SYMLINK>({{root2(), "link"}, std::string(1001, 't'), with_mode(0777)}),
            NFS_OK);
  EXPECT_LT(channel_.last_call.size(), 250u);
  const diropres link = found("link");
  ASSERT_EQ(link.status, NFS_OK);
  EXPECT_EQ(link.diropok().attributes.type, NFLNK);
  EXPECT_EQ(call<NFSPROC_READLINK>(link.diropok().file).link().data, std::string(1001, 't'));
}

TEST_F(Nfs2, says_the_type_in_the_mode_bits_as_well) {
  EXPECT_EQ(attributes(root2()).type, NFDIR);
  EXPECT_EQ(attributes(root2()).mode, 0041777u);
  EXPECT_EQ(attributes(file("file")).type, NFREG);
  EXPECT_EQ(attributes(file("file")).mode, 0100644u);
}

TEST_F(Nfs2, makes_special_files_by_the_type_in_the_mode_bits) {
  const fhandle dir = root2();
  const diropres fifo = made(dir, "fifo", 0010600);
  ASSERT_EQ(fifo.status, NFS_OK);
  EXPECT_EQ(fifo.diropok().attributes.type, NFFIFO);
  EXPECT_EQ(fifo.diropok().attributes.mode, 0010600u);
  sattr device = with_mode(0060600);
  device.size = 8 << 8 | 17;
  const diropres block = call<NFSPROC_CREATE>({{dir, "block"}, device});
  ASSERT_EQ(block.status, NFS_OK);
  EXPECT_EQ(block.diropok().attributes.type, NFBLK);
  EXPECT_EQ(block.diropok().attributes.rdev, 8u << 8 | 17);
  EXPECT_EQ(made(dir, "sunos", 0020600).diropok().attributes.type, NFFIFO);
  EXPECT_EQ(made(dir, "dir", 0040755).status, NFSERR_PERM);
}

TEST_F(Nfs2, changes_only_the_attributes_that_are_given) {
  const fhandle it = file("file");
  ASSERT_EQ(write2(it, 0, "hello").status, NFS_OK);
  sattr times = kKeep;
  times.mtime = {1000, 500000};
  ASSERT_EQ(call<NFSPROC_SETATTR>({it, times}).status, NFS_OK);
  const fattr before = attributes(it);
  EXPECT_EQ(before.mtime, (timeval{1000, 500000}));
  const attrstat res = call<NFSPROC_SETATTR>({it, with_mode(0600)});
  ASSERT_EQ(res.status, NFS_OK);
  EXPECT_EQ(res.attributes().mode, 0100600u);
  EXPECT_EQ(res.attributes().mtime, before.mtime);
  EXPECT_EQ(res.attributes().size, 5u);
  EXPECT_EQ(call<NFSPROC_SETATTR>({it, with_mode(0xffff)}).attributes().mode, 0100600u);
  EXPECT_EQ(call<NFSPROC_SETATTR>({it, with_size(2)}).attributes().size, 2u);
}

TEST_F(Nfs2, takes_a_million_microseconds_for_its_own_time) {
  const fhandle it = file("file");
  sattr long_ago = kKeep;
  long_ago.atime = long_ago.mtime = {1000, 0};
  ASSERT_EQ(call<NFSPROC_SETATTR>({it, long_ago}).status, NFS_OK);
  sattr now = kKeep;
  now.atime = {5, 0};
  now.mtime = {5, 1'000'000};
  const attrstat res = call<NFSPROC_SETATTR>({it, now});
  ASSERT_EQ(res.status, NFS_OK);
  EXPECT_GT(res.attributes().mtime.seconds, 1000u);
  EXPECT_GT(res.attributes().atime.seconds, 1000u);
  now.mtime = {5, 1'000'001};
  EXPECT_EQ(call<NFSPROC_SETATTR>({it, now}).status, NFSERR_ACCES);
}

TEST_F(Nfs2, opens_a_file_that_is_there_already) {
  const fhandle it = file("file");
  ASSERT_EQ(write2(it, 0, "hello").status, NFS_OK);
  const diropres again = made(root2(), "file", 0600);
  ASSERT_EQ(again.status, NFS_OK);
  EXPECT_EQ(again.diropok().file, it);
  EXPECT_EQ(again.diropok().attributes.size, 5u);
  EXPECT_EQ(call<NFSPROC_CREATE>({{root2(), "file"}, with_size(0)}).diropok().attributes.size, 0u);
}

TEST_F(Nfs2, makes_renames_links_and_removes_names) {
  const fhandle dir = root2();
  const diropres sub = call<NFSPROC_MKDIR>({{dir, "sub"}, with_mode(0750)});
  ASSERT_EQ(sub.status, NFS_OK);
  EXPECT_EQ(sub.diropok().attributes.mode, 0040750u);
  const fhandle it = file("file");
  EXPECT_EQ(call<NFSPROC_LINK>({it, {sub.diropok().file, "second"}}), NFS_OK);
  EXPECT_EQ(attributes(it).nlink, 2u);
  EXPECT_EQ(call<NFSPROC_LINK>({it, {dir, "sub"}}), NFSERR_EXIST);
  EXPECT_EQ(call<NFSPROC_RENAME>({{dir, "file"}, {sub.diropok().file, "third"}}), NFS_OK);
  EXPECT_EQ(found("file").status, NFSERR_NOENT);
  EXPECT_EQ(call<NFSPROC_RMDIR>({dir, "sub"}), NFSERR_NOTEMPTY);
  EXPECT_EQ(call<NFSPROC_REMOVE>({dir, "sub"}), NFSERR_ISDIR);
  EXPECT_EQ(call<NFSPROC_REMOVE>({sub.diropok().file, "second"}), NFS_OK);
  EXPECT_EQ(call<NFSPROC_REMOVE>({sub.diropok().file, "third"}), NFS_OK);
  EXPECT_EQ(call<NFSPROC_RMDIR>({dir, "sub"}), NFS_OK);
  EXPECT_EQ(call<NFSPROC_GETATTR>(it).status, NFSERR_STALE);
}

TEST_F(Nfs2, lists_every_entry_once_within_the_count) {
  const fhandle dir = root2();
  std::vector<std::string> expected{".", ".."};
  for (int i = 0; i < 300; ++i) {
    expected.push_back("entry" + std::to_string(i));
    ASSERT_EQ(made(dir, expected.back()).status, NFS_OK);
  }
  std::sort(expected.begin(), expected.end());
  for (const std::uint32_t count : {64u, 512u, 8192u}) {
    std::vector<std::string> listed = names(dir, count);
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, expected) << count;
  }
  EXPECT_EQ(call<NFSPROC_READDIR>({dir, {}, 16}).status, NFSERR_IO) << "room for no entry";
  const nfscookie never{std::byte{0x80}, std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_EQ(call<NFSPROC_READDIR>({dir, never, 4096}).status, NFSERR_IO);
}

TEST_F(Nfs2, gives_entries_the_number_of_their_attributes) {
  const fhandle it = file("file");
  const readdirres res = call<NFSPROC_READDIR>({root2(), {}, 4096});
  ASSERT_EQ(res.status, NFS_OK);
  EXPECT_EQ(res.readdirok().entries.back().name, "file");
  EXPECT_EQ(res.readdirok().entries.back().fileid, attributes(it).fileid);
}

TEST_F(Nfs2, neither_reads_nor_writes_what_is_too_large_for_it) {
  const fhandle it = file("large");
  EXPECT_EQ(write2(it, 0x7ffffffc, "abcd").status, NFSERR_FBIG);
  ASSERT_EQ(write2(it, 0x7ffffffb, "abcd").status, NFS_OK);
  EXPECT_EQ(attributes(it).size, 0x7fffffffu);
  EXPECT_EQ(text(call<NFSPROC_READ>({it, 0x7ffffffb, 9, 0}).reply().data), "abcd");
  EXPECT_EQ(call<NFSPROC_SETATTR>({it, with_size(0x80000000)}).status, NFSERR_FBIG);
  v3::SETATTR3args longer{wide(it), {}, {}};
  longer.new_attributes.size.set_it = true;
  longer.new_attributes.size.size() = 0x80000000;
  ASSERT_EQ(call<v3::NFSPROC3_SETATTR>(longer).status, v3::NFS3_OK);
  EXPECT_EQ(attributes(it).size, 0x7fffffffu);
  EXPECT_EQ(call<NFSPROC_READ>({it, 0, 9, 0}).status, NFSERR_FBIG);
}

TEST_F(Nfs2, refuses_links_too_long_for_it) {
  ASSERT_EQ(call<v3::NFSPROC3_SYMLINK>({{root(), "long"}, {{}, std::string(1025, 't')}}).status,
            v3::NFS3_OK);
  EXPECT_EQ(call<NFSPROC_READLINK>(found("long").diropok().file).status, NFSERR_NAMETOOLONG);
  EXPECT_EQ(call<NFSPROC_READLINK>(root2()).status, NFSERR_ACCES);
  EXPECT_EQ(call<NFSPROC_SYMLINK>({{root2(), "nul"}, std::string("a\0b", 3), kKeep}), NFSERR_ACCES);
}

TEST_F(Nfs2, returns_the_free_space_in_blocks) {
  const statfsres res = call<NFSPROC_STATFS>(root2());
  ASSERT_EQ(res.status, NFS_OK);
  const statfsok& info = res.info();
  EXPECT_EQ(info.tsize, 8192u);
  const auto exact = call<v3::NFSPROC3_FSSTAT>({root()}).resok();
  EXPECT_LT(exact.tbytes - std::uint64_t{info.blocks} * info.bsize, info.bsize);
  EXPECT_LE(info.bavail, info.bfree);
  EXPECT_LE(info.bfree, info.blocks);
}

TEST_F(Nfs2, refuses_handles_it_did_not_make) {
  fhandle forged = root2();
  forged[31] ^= std::byte{1};
  EXPECT_EQ(call<NFSPROC_GETATTR>(forged).status, NFSERR_STALE);
  EXPECT_EQ(call<NFSPROC_STATFS>(forged).status, NFSERR_STALE);
  EXPECT_EQ(call<NFSPROC_READDIR>({forged, {}, 4096}).status, NFSERR_STALE);
  EXPECT_EQ(call<NFSPROC_RENAME>({{root2(), "a"}, {forged, "b"}}), NFSERR_STALE);
}

TEST_F(Nfs2, answers_a_repeated_Call_from_the_replay_cache) {
  call<NFSPROC_MKDIR>({{root2(), "once"}, with_mode(0755)});
  rpc::IncomingCall again;
  again.origin = std::make_shared<rpc::Origin>(channel_.origin());
  again.payload = channel_.last_call;
  const xdr::Stream first = channel_.last_reply;
  const auto reply = loop_.run(server_.serve(again));
  ASSERT_TRUE(reply.has_value() && reply->has_value());
  EXPECT_EQ((**reply).stream.rope(), first.rope());
}

class Nfs2ReadOnly : public Nfs2 {
 protected:
  void SetUp() override {
    ASSERT_TRUE(nfs_.add_export("/ro", store_, *parse_export_options("ro,no_root_squash")).ok());
  }
};

TEST_F(Nfs2ReadOnly, changes_nothing_and_links_to_no_other_export) {
  const fhandle it = file("file");
  const fhandle ro = mounted2("/ro");
  const fhandle same = call<NFSPROC_LOOKUP>({ro, "file"}).diropok().file;
  EXPECT_EQ(write2(same, 0, "x").status, NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_SETATTR>({same, with_mode(0)}).status, NFSERR_ROFS);
  EXPECT_EQ(made(ro, "x").status, NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_MKDIR>({{ro, "x"}, kKeep}).status, NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_SYMLINK>({{ro, "x"}, "t", kKeep}), NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_LINK>({same, {ro, "x"}}), NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_REMOVE>({ro, "file"}), NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_RMDIR>({ro, "file"}), NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_RENAME>({{ro, "file"}, {ro, "x"}}), NFSERR_ROFS);
  EXPECT_EQ(call<NFSPROC_LINK>({it, {ro, "x"}}), NFSERR_NODEV);
  EXPECT_EQ(call<NFSPROC_RENAME>({{root2(), "file"}, {ro, "x"}}), NFSERR_NODEV);
}

// A store whose root has a handle a byte too long for version 2.
class LongHandles final : public testing::FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  vfs::Handle root() const override { return *vfs::Handle::from(bytes_of("twenty bytes of name")); }
  vfs::Operation<vfs::Attributes> attributes(vfs::CallerContext caller,
                                             const vfs::Handle&) override {
    const vfs::Handle inner = FaultyStore::root();
    co_return co_await FaultyStore::attributes(caller, inner);
  }
};

TEST_F(Nfs2, is_not_for_stores_whose_handles_are_too_long_and_says_so) {
  ASSERT_TRUE(nfs_.add_export("/long", std::make_shared<LongHandles>(store_), {}).ok());
  const auto before = reason_counters().of(Reason::NfsHandleTooLong);
  EXPECT_EQ(call<mount3::MOUNTPROC1_MNT>("/long").status, 5u);
  EXPECT_EQ(reason_counters().of(Reason::NfsHandleTooLong), before + 1);
  EXPECT_EQ(call<mount3::MOUNTPROC3_MNT>("/long").fhs_status, mount3::MNT3_OK);
}

TEST_F(Nfs2, is_mounted_by_versions_1_and_2_over_TCP_only) {
  PROVES("R8267-5.1-a");
  channel_.origin().transport = rpc::TransportKind::Tcp;
  const auto one = call<mount3::MOUNTPROC1_MNT>("/data");
  const auto two = call<mount3::MOUNTPROC2_MNT>("/data");
  ASSERT_EQ(one.status, 0u);
  ASSERT_EQ(two.status, 0u);
  EXPECT_EQ(one.directory(), two.directory());
  EXPECT_EQ(call<mount3::MOUNTPROC3_MNT>("/data").fhs_status, mount3::MNT3_OK);
  EXPECT_EQ(call<mount3::MOUNTPROC1_MNT>("/none").status, 2u);
  EXPECT_EQ(call<mount3::MOUNTPROC2_MNT>("none").status, 13u);
  EXPECT_EQ(call<mount3::MOUNTPROC1_EXPORT>({}).size(), 2u);
  EXPECT_EQ(call<mount3::MOUNTPROC2_EXPORTALL>({}).size(), 2u);
  EXPECT_EQ(call<mount3::MOUNTPROC2_DUMP>({}).size(), 1u);
  call<mount3::MOUNTPROC1_UMNT>("/data");
  EXPECT_TRUE(call<mount3::MOUNTPROC1_DUMP>({}).empty());
  EXPECT_EQ(call<mount3::MOUNTPROC2_PATHCONF>("/data").pc_name_max, 255);
  EXPECT_EQ(call<mount3::MOUNTPROC2_PATHCONF>("/none").pc_name_max, 0);
  channel_.origin().transport = rpc::TransportKind::Rdma;
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    rpc::Client client(channel_, {}, credentials_);
    EXPECT_FALSE(loop_.run(client.ping(mount3::MOUNT_PROGRAM, version))->ok()) << version;
  }
}

TEST(Nfs2Cookies, remember_large_cookies_and_never_mix_them_up) {
  nfs2::Cookies cookies(4);
  EXPECT_EQ(cookies.number_of(7), 7u);
  EXPECT_EQ(cookies.cookie_of(7), 7u);
  std::vector<std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < 6; ++i)
    numbers.push_back(cookies.number_of(0x7fff000000000000 + i));
  EXPECT_EQ(cookies.number_of(0x7fff000000000005), numbers[5]) << "a known one keeps its number";
  EXPECT_FALSE(cookies.cookie_of(numbers[0]).has_value());
  EXPECT_FALSE(cookies.cookie_of(numbers[1]).has_value());
  for (std::uint64_t i = 2; i < 6; ++i)
    EXPECT_EQ(cookies.cookie_of(numbers[i]), 0x7fff000000000000 + i);
  EXPECT_NE(cookies.number_of(0x7fff000000000000), numbers[0]);
  EXPECT_FALSE(cookies.cookie_of(0xffffffff).has_value());
}

TEST_F(Nfs2, waits_for_the_name_of_a_client_since_it_has_no_status_for_later) {
  const fhandle dir = root2();
  const auto worker = std::make_shared<testing::HeldExecutor>();
  ExportOptions open;
  open.root_squash = false;
  ASSERT_TRUE(
      nfs_.replace_exports({{"/data", store_, open, {testing::rule_by_name(open, worker)}}}).ok());
  channel_.origin().peer = {"192.0.2.1", 700};
  const auto looked = start<NFSPROC_GETATTR>(dir);
  const auto moved = start<NFSPROC_RENAME>({{dir, "a"}, {dir, "b"}});
  EXPECT_FALSE(*looked || *moved);
  worker->run_all();
  loop_.pass(std::chrono::milliseconds(20));
  ASSERT_TRUE(*looked && *moved);
  EXPECT_EQ((*looked)->status, NFS_OK);
  EXPECT_EQ(**moved, NFSERR_NOENT);
  // Not for ever.
  channel_.origin().peer = {"198.51.100.1", 700};
  const auto silent = start<NFSPROC_GETATTR>(dir);
  loop_.pass(std::chrono::seconds(11));
  ASSERT_TRUE(*silent);
  EXPECT_EQ((*silent)->status, NFSERR_IO);
}

}  // namespace
}  // namespace stag::nfs
