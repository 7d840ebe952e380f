// Exports that differ by client and are replaced while they are served.
#include "nfs/export/export_table.h"

#include <gtest/gtest.h>

#include <thread>

#include "nfs/export/exports_of_call.h"
#include "testing/nfs/faulty_store.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v3;

Exports one(const std::string& path, std::shared_ptr<vfs::FileSystem> files = nullptr) {
  Exports exports;
  STAG_CHECK(exports.add(1, {path, std::move(files), {}}).ok());
  return exports;
}

TEST(ExportTable, gives_the_exports_that_hold_now) {
  ExportTable table;
  ExportTable other;
  EXPECT_TRUE(table.current()->all().empty());
  table.replace(one("/a"));
  other.replace(one("/other"));
  EXPECT_EQ(table.current()->all().at(0).path(), "/a");
  EXPECT_EQ(other.current()->all().at(0).path(), "/other");
  const auto kept = table.current();
  table.replace(one("/b"));
  EXPECT_EQ(table.current()->all().at(0).path(), "/b");
  EXPECT_EQ(kept->all().at(0).path(), "/a") << "who has taken a table keeps it";
}

TEST(ExportTable, keeps_one_export_for_who_uses_it) {
  ExportTable table;
  auto used = std::make_shared<vfs::MemoryFileSystem>(),
       other = std::make_shared<vfs::MemoryFileSystem>();
  const std::weak_ptr<vfs::FileSystem> used_alive = used, other_alive = other;
  Exports exports = one("/a", std::move(used));
  STAG_CHECK(exports.add(7, {"/b", std::move(other), {}}).ok());
  table.replace(std::move(exports));
  std::thread([&] { EXPECT_EQ(table.keep(7)->path(), "/b"); }).join();
  EXPECT_EQ(table.keep(7)->path(), "/b");
  EXPECT_EQ(table.keep(2), nullptr);
  auto in_progress = table.keep(1);
  EXPECT_EQ(table.keep(1), in_progress);
  table.replace(one("/a"));
  EXPECT_TRUE(other_alive.expired());
  EXPECT_FALSE(used_alive.expired());
  EXPECT_NE(table.keep(1), in_progress) << "who asks now gets the present one";
  EXPECT_EQ(table.keep(7), nullptr);
  in_progress = nullptr;
  EXPECT_TRUE(used_alive.expired());
}

TEST(ExportsOfCall, are_those_that_were_present_when_it_met_them) {
  ExportTable table;
  table.replace(one("/a"));
  ExportsOfCall call(table);
  auto shared = call.share(1);
  const std::weak_ptr<const Export> removed = shared;
  table.replace(one("/a"));
  const Export* const met = call.meet(1);
  EXPECT_EQ(call.meet(std::move(shared)), met) << "and it keeps that one";
  EXPECT_TRUE(removed.expired());
  table.replace(one("/a"));
  EXPECT_EQ(call.meet(1), met);
}

TEST(ExportTable, keeps_exports_of_two_tables_apart) {
  ExportTable table, other;
  table.replace(one("/a"));
  other.replace(one("/other"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(table.keep(1)->path(), "/a");
    EXPECT_EQ(other.keep(1)->path(), "/other");
  }
}

TEST(ExportTable, says_whether_an_export_lies_below_another_one) {
  ExportTable table;
  Exports exports = one("/a");
  STAG_CHECK(exports.add(2, {"/a/b", nullptr, {}}).ok());
  table.replace(std::move(exports));
  EXPECT_TRUE(table.nested());
  EXPECT_NE(table.keep(2), nullptr);
  EXPECT_TRUE(table.nested());
  table.replace(one("/a"));
  EXPECT_FALSE(table.nested());
}

TEST(ExportTable, lets_go_of_file_systems_when_the_last_that_took_them_has_ended) {
  ExportTable table;
  auto files = std::make_shared<vfs::MemoryFileSystem>();
  const std::weak_ptr<vfs::FileSystem> alive = files;
  table.replace(one("/a", std::move(files)));
  // An idle thread that has served from it keeps nothing.
  std::thread([&] { EXPECT_EQ(table.current()->all().size(), 1u); }).join();
  auto in_progress = table.current();
  table.replace(one("/b"));
  EXPECT_FALSE(alive.expired());
  in_progress = nullptr;
  EXPECT_TRUE(alive.expired());
}

TEST(ExportTable, is_read_by_some_threads_while_another_replaces_it) {
  ExportTable table;
  table.replace(one("/0"));
  std::atomic<bool> over{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      int last = 0;
      while (!over) {
        const int now = std::stoi(table.current()->all().at(0).path().substr(1));
        EXPECT_GE(now, last) << "an older table came back";
        last = std::stoi(table.keep(1)->path().substr(1));
        EXPECT_GE(last, now) << "an older export came back";
      }
    });
  for (int i = 1; i <= 2000; ++i) table.replace(one("/" + std::to_string(i)));
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(table.current()->all().at(0).path(), "/2000");
}

class ExportTableClients : public testing::NfsServerTest {
 protected:
  void from(const std::string& host) { channel_.origin().peer.host = host; }
  static ClientRule rule(std::string_view match, std::string_view options) {
    return *make_client_rule(match, *parse_export_options(options));
  }
  mount3::mountstat3 mount(const std::string& path) {
    return call<mount3::MOUNTPROC3_MNT>(path).fhs_status;
  }
  nfsstat3 status(const nfs_fh3& handle) { return call<NFSPROC3_FSINFO>({handle}).status; }
};

TEST_F(ExportTableClients, are_served_on_their_own_terms_and_others_not_at_all) {
  ASSERT_TRUE(nfs_.add_export("/by", store_, {},
                              {rule("192.0.2.0/24", "ro,no_root_squash"),
                               rule("192.0.2.7", "rw,no_root_squash"),
                               rule("2001:db8::/32", "rw,root_squash,anonuid=12")})
                  .ok());
  const nfs_fh3 dir = mounted("/by");
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{dir, "x"}, {}}).status, NFS3ERR_ROFS);
  from("192.0.2.7");
  mkdir(dir, "x");
  from("2001:db8::9");
  const nfs_fh3 file = create(mounted("/by"), "f");
  EXPECT_EQ(call<NFSPROC3_GETATTR>({file}).resok().obj_attributes.uid, 12u);
  from("198.51.100.1");
  const std::uint64_t before = reason_counters().of(Reason::NfsClientNotAdmitted);
  EXPECT_EQ(mount("/by"), mount3::MNT3ERR_ACCES);
  EXPECT_EQ(mount("/by/x"), mount3::MNT3ERR_ACCES);
  EXPECT_EQ(status(dir), NFS3ERR_STALE) << "FSINFO has no ACCES";
  EXPECT_EQ(call<NFSPROC3_LOOKUP>({{dir, "x"}}).status, NFS3ERR_ACCES);
  EXPECT_EQ(reason_counters().of(Reason::NfsClientNotAdmitted), before + 4);
  EXPECT_EQ(mount("/data"), mount3::MNT3_OK);
}

TEST_F(ExportTableClients, are_listed_with_the_exports) {
  ASSERT_TRUE(
      nfs_.add_export("/by", store_, {}, {rule("192.0.2.0/24", "ro"), rule("*", "ro")}).ok());
  const auto exports = call<mount3::MOUNTPROC3_EXPORT>({});
  ASSERT_EQ(exports.size(), 3u);
  EXPECT_TRUE(exports[0].ex_groups.empty());
  EXPECT_EQ(exports[2].ex_dir, "/by");
  ASSERT_EQ(exports[2].ex_groups.size(), 2u);
  EXPECT_EQ(exports[2].ex_groups[0].gr_name, "192.0.2.0/24");
  EXPECT_EQ(exports[2].ex_groups[1].gr_name, "*");
}

TEST_F(ExportTableClients, keep_what_stays_exported_and_lose_what_does_not) {
  const nfs_fh3 dir = mounted("/data");
  const nfs_fh3 gone = mounted("/odd");
  const auto added = std::make_shared<vfs::MemoryFileSystem>();
  ExportOptions read_only;
  read_only.read_only = true;
  ASSERT_TRUE(nfs_.replace_exports({{"/new", added, {}}, {"/data", store_, read_only}}).ok());
  EXPECT_EQ(status(dir), NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{dir, "x"}, {}}).status, NFS3ERR_ROFS);
  EXPECT_EQ(status(gone), NFS3ERR_STALE);
  EXPECT_EQ(mount("/odd"), mount3::MNT3ERR_NOENT);
  EXPECT_EQ(status(mounted("/new")), NFS3_OK);
  // Exported again it is what it was.
  ASSERT_TRUE(nfs_.replace_exports({{"/odd", store_, {}}}).ok());
  EXPECT_EQ(status(gone), NFS3_OK);
  EXPECT_EQ(status(dir), NFS3ERR_STALE);
}

// A store that is told which tree it is.
struct Identified final : testing::FaultyStore {
  using FaultyStore::FaultyStore;
  std::string identity() const override { return tree; }
  std::string tree;
};

TEST_F(ExportTableClients, lose_the_handles_of_a_tree_that_is_replaced_under_the_same_name) {
  const auto identified = std::make_shared<Identified>(store_);
  const auto serve = [&](std::string tree) {
    identified->tree = std::move(tree);
    ASSERT_TRUE(nfs_.replace_exports({{"/data", identified, {}}}).ok());
  };
  serve("one");
  const nfs_fh3 file = create(mounted("/data"), "f");
  serve("another");
  EXPECT_EQ(status(file), NFS3ERR_STALE);
  EXPECT_EQ(call<NFSPROC3_READ>({file, 0, 10}).status, NFS3ERR_STALE);
  EXPECT_EQ(call<NFSPROC3_SETATTR>({file, {}, {}}).status, NFS3ERR_STALE);
  EXPECT_EQ(status(call<NFSPROC3_LOOKUP>({{mounted("/data"), "f"}}).resok().object), NFS3_OK);
  serve("one");
  EXPECT_EQ(status(file), NFS3_OK);
}

TEST_F(ExportTableClients, notice_nothing_of_exports_that_cannot_be) {
  const nfs_fh3 dir = mounted("/data");
  EXPECT_FALSE(nfs_.replace_exports({{"/new", store_, {}}, {"no path", store_, {}}}).ok());
  EXPECT_EQ(status(dir), NFS3_OK);
  EXPECT_EQ(mount("/new"), mount3::MNT3ERR_NOENT);
}

TEST_F(ExportTableClients, get_the_inner_one_of_nested_exports_by_its_name) {
  const auto inner = std::make_shared<vfs::MemoryFileSystem>();
  ASSERT_TRUE(nfs_.add_export("/data/in", inner, {}).ok());
  mkdir(root(), "in");
  const nfs_fh3 covered = call<NFSPROC3_LOOKUP>({{root(), "in"}}).resok().object;
  const nfs_fh3 mounted_in = mounted("/data/in");
  EXPECT_NE(covered, mounted_in);
  const auto fsid = [&](const nfs_fh3& handle) {
    return call<NFSPROC3_GETATTR>({handle}).resok().obj_attributes.fsid;
  };
  EXPECT_NE(fsid(covered), fsid(mounted_in));
}

TEST_F(ExportTableClients, are_given_numbers_of_file_systems_that_last) {
  const NfsServer again(ServerState::ephemeral(7));
  EXPECT_EQ(again.file_system_id("/data"), nfs_.file_system_id("//data/"));
  EXPECT_NE(nfs_.file_system_id("/data"), nfs_.file_system_id("/odd"));
}

}  // namespace
}  // namespace stag::nfs
