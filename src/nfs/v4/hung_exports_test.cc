// Exports whose store does not answer: listings of the folders in which they are mounted, and what
// clients have elsewhere whose calls hang there.
#include "testing/nfs/nfs4_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;
using vfs::testing::Called;

constexpr std::uint32_t kError = 1u << v4::FATTR4_RDATTR_ERROR;
constexpr std::uint32_t kType = 1u << v4::FATTR4_TYPE;
constexpr std::uint32_t kMountedOn = 1u << (v4::FATTR4_MOUNTED_ON_FILEID - 32);

// /data has a file and a folder "hung", where an export is mounted, as in /other.
class Nfs4HungExport : public Nfs4Served {
 protected:
  ~Nfs4HungExport() override {
    held_->release_all();
    loop_.drain();
    nfs4_.stop_callbacks();
  }
  void SetUp() override {
    Nfs4Served::SetUp();
    create("file");
    v4::CREATE4args args;
    args.objtype.type = v4::NF4DIR;
    args.objname = "hung";
    const Op made = op(v4::OP_CREATE, &Op::opcreate, std::move(args));
    ASSERT_EQ(run({putrootfh(), lookup("data"), made}).status, v4::NFS4_OK);
    nfs::ExportOptions open;
    open.root_squash = false;
    const auto hung = std::make_shared<vfs::testing::SteppedStore>(fixed_store_, held_);
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/data", store_, open}).ok());
    STAG_CHECK(exports.add(2, {"/data/hung", hung, open}).ok());
    STAG_CHECK(exports.add(3, {"/other/hung", hung, open}).ok());
    STAG_CHECK(exports.add(4, {"/other/well", store_, open}).ok());
    context_.exports.replace(std::move(exports));
  }

  struct Listing {
    bool ended = false;
    v4::nfsstat4 status = v4::NFS4_OK;
    std::map<std::string, v4::fattr4> entries{};
    bool eof = false;
  };
  using ListingPtr = std::shared_ptr<Listing>;
  ListingPtr list(const char* folder, v4::bitmap4 asked, std::uint32_t room = 8192) {
    v4::READDIR4args args;
    args.dircount = args.maxcount = room;
    args.attr_request = std::move(asked);
    const auto listing = std::make_shared<Listing>();
    const Op readdir = op(v4::OP_READDIR, &Op::opreaddir, args);
    detach(call(listing, {"", minor_, {sequence(), putrootfh(), lookup(folder), readdir}}));
    loop_.drain();
    return listing;
  }
  Task<void> call(ListingPtr listing, v4::COMPOUND4args args) {
    rpc::Client client(channel_, ulb::nfs4(), credentials_);
    auto result = co_await client.template call<v4::NFSPROC4_COMPOUND>(args);
    STAG_CHECK(result.ok());
    listing->ended = true;
    listing->status = result->status;
    if (listing->status != v4::NFS4_OK || result->resarray.back().resop != v4::OP_READDIR)
      co_return;
    v4::dirlist4& list = result->resarray.back().opreaddir().resok4().reply;
    for (v4::entry4& entry : list.entries) listing->entries.emplace(entry.name, entry.attrs);
    listing->eof = list.eof;
  }
  static std::string error(v4::nfsstat4 status) {
    std::array<std::byte, 4> bytes{};
    store_be(bytes.data(), static_cast<std::uint32_t>(status));
    return std::string(text_of(bytes));
  }

  const std::shared_ptr<vfs::testing::HeldSteps> held_ =
      std::make_shared<vfs::testing::HeldSteps>();
};

TEST_F(Nfs4HungExport, is_not_asked_for_a_listing_of_names) {
  for (const char* folder : {"data", "other"}) {
    const auto names = list(folder, {});
    EXPECT_TRUE(names->ended) << folder;
    EXPECT_EQ(names->entries.size(), 2u) << folder;
    // All that Linux asks for then.
    const auto plain = list(folder, {kError, kMountedOn});
    EXPECT_TRUE(plain->ended) << folder;
    EXPECT_TRUE(held_->waiting.empty());
    const v4::fattr4& listed = plain->entries["hung"];
    EXPECT_EQ(listed.attrmask, (v4::bitmap4{kError, kMountedOn}));
    held_->release_all();
    const auto asked = list(folder, {kError | kType, kMountedOn});
    held_->release_all();
    ASSERT_TRUE(asked->ended);
    const std::string all = text(asked->entries["hung"].attr_vals);
    EXPECT_EQ(text(listed.attr_vals), all.substr(4)) << folder;
  }
}

TEST_F(Nfs4HungExport, is_waited_for_a_second_and_listed_with_NFS4ERR_DELAY) {
  for (const char* folder : {"data", "other"}) {
    const auto listing = list(folder, {kError | kType});
    loop_.pass(999ms);
    EXPECT_FALSE(listing->ended) << folder;
    loop_.pass(1ms);
    ASSERT_TRUE(listing->ended) << folder;
    EXPECT_EQ(listing->status, v4::NFS4_OK);
    EXPECT_TRUE(listing->eof);
    ASSERT_EQ(listing->entries.size(), 2u) << folder;
    const v4::fattr4& hung = listing->entries["hung"];
    EXPECT_EQ(hung.attrmask, v4::bitmap4{kError}) << folder;
    EXPECT_EQ(text(hung.attr_vals), error(v4::NFS4ERR_DELAY)) << folder;
    const auto& well = listing->entries[*folder == 'd' ? "file" : "well"];
    EXPECT_EQ(well.attrmask, v4::bitmap4{kError | kType}) << folder;
    held_->release_all();
  }
}

TEST_F(Nfs4HungExport, is_listed_as_what_it_is_where_it_answers_within_that_second) {
  for (const char* folder : {"data", "other"}) {
    const auto listing = list(folder, {kError | kType});
    loop_.pass(999ms);
    held_->release_all();
    loop_.drain();
    ASSERT_TRUE(listing->ended) << folder;
    EXPECT_EQ(listing->entries["hung"].attrmask, v4::bitmap4{kError | kType}) << folder;
  }
}

TEST_F(Nfs4HungExport, may_answer_when_its_export_and_the_session_are_gone) {
  const auto listing = list("data", {kError | kType});
  loop_.pass(1s);
  ASSERT_TRUE(listing->ended);
  ASSERT_EQ(held_->waiting.size(), 1u);
  context_.exports.replace({});
  ASSERT_EQ(destroy_session(), v4::NFS4_OK);
  held_->release_all();
  loop_.drain();
  EXPECT_TRUE(held_->waiting.empty());
}

// The disk of another export that is removed could not be unmounted.
TEST_F(Nfs4HungExport, keeps_no_file_system_in_use_but_its_own) {
  auto disk = std::make_shared<vfs::MemoryFileSystem>();
  auto hung = std::make_shared<vfs::testing::SteppedStore>(fixed_store_, held_);
  const std::weak_ptr<vfs::FileSystem> removed = disk, asked = hung;
  nfs::Exports exports;
  STAG_CHECK(exports.add(1, {"/disk", std::move(disk), {}}).ok());
  STAG_CHECK(exports.add(2, {"/other/hung", std::move(hung), {}}).ok());
  context_.exports.replace(std::move(exports));
  const auto listing = list("other", {kError | kType});
  loop_.pass(1s);
  ASSERT_TRUE(listing->ended);
  ASSERT_EQ(held_->waiting.size(), 1u);
  context_.exports.replace({});
  EXPECT_TRUE(removed.expired());
  EXPECT_FALSE(asked.expired());
  held_->release_all();
  loop_.drain();
  EXPECT_TRUE(asked.expired());
}

// A COMPOUND that hangs in /hung.
class Nfs4HungCompound : public Nfs4HungExport {
 protected:
  void SetUp() override {
    Nfs4HungExport::SetUp();
    serve({"/hung", "/met", "/other"});
    for (const char* path : {"met", "other"}) {
      const Res found = run({putrootfh(), lookup(path), getfh()});
      ASSERT_EQ(found.status, v4::NFS4_OK);
      handles_[path] = found.resarray[2].opgetfh().resok4().object;
    }
  }
  void serve(std::initializer_list<std::string> paths) {
    nfs::Exports exports;
    for (const std::string& path : paths) {
      auto store = alive_[path].lock();
      if (store == nullptr && path == "/hung")
        store = std::make_shared<vfs::testing::SteppedStore>(fixed_store_, held_);
      else if (store == nullptr)
        store = std::make_shared<vfs::MemoryFileSystem>();
      alive_[path] = store;
      const auto id = static_cast<std::uint32_t>(std::hash<std::string>{}(path));
      STAG_CHECK(exports.add(id, {path, std::move(store), {}}).ok());
    }
    context_.exports.replace(std::move(exports));
  }
  // /met, then what hangs, and then `last`.
  void hang(const Op& last) {
    const auto running = std::make_shared<Listing>();
    const Op save = op(v4::OP_SAVEFH), attributes = getattr({kType});
    detach(call(running, {"",
                          minor_,
                          {sequence(), putfh(handles_["met"]), save, putrootfh(), lookup("hung"),
                           attributes, last, attributes}}));
    loop_.drain();
    ASSERT_EQ(held_->waiting.size(), 1u);
    running_ = running;
  }
  v4::nfsstat4 end() {
    held_->release_all();
    loop_.drain();
    EXPECT_TRUE(running_->ended);
    return running_->status;
  }

  std::map<std::string, std::weak_ptr<vfs::FileSystem>> alive_;
  std::map<std::string, v4::nfs_fh4> handles_;
  ListingPtr running_;
};

TEST_F(Nfs4HungCompound, keeps_the_exports_that_it_has_met_and_no_others) {
  hang(op(v4::OP_RESTOREFH));
  serve({});
  EXPECT_TRUE(alive_["/other"].expired());
  EXPECT_FALSE(alive_["/met"].expired());
  EXPECT_FALSE(alive_["/hung"].expired());
  EXPECT_EQ(end(), v4::NFS4_OK);
  EXPECT_TRUE(alive_["/met"].expired());
  EXPECT_TRUE(alive_["/hung"].expired());
}

TEST_F(Nfs4HungCompound, finds_an_export_stale_that_it_meets_when_it_was_removed) {
  hang(putfh(handles_["other"]));
  serve({"/hung", "/met"});
  EXPECT_EQ(end(), v4::NFS4ERR_STALE);
}

TEST_F(Nfs4HungCompound, meets_an_export_as_it_is_then) {
  hang(putfh(handles_["other"]));
  serve({"/other"});
  EXPECT_EQ(end(), v4::NFS4_OK);
}

// What the root of an export is mounted on is asked of the exports that are there.
TEST_F(Nfs4HungCompound, goes_on_in_an_export_that_was_removed_meanwhile) {
  hang(getattr({0, kMountedOn}));
  serve({"/met"});
  EXPECT_EQ(end(), v4::NFS4_OK);
}

TEST_F(Nfs4HungExport, is_not_asked_for_a_page_that_does_not_reach_it) {
  // As many as there is room for one of: verifier, cookie, name, error, type.
  const std::uint32_t room = 16 + (4 + 8 + 8 + 8 + 4 + 8) + 4;
  const auto first = list("data", {kError | kType}, room);
  EXPECT_TRUE(first->ended);
  EXPECT_EQ(first->entries.size(), 1u);
  EXPECT_TRUE(first->entries.contains("file"));
  EXPECT_TRUE(held_->waiting.empty());
}

TEST_F(Nfs4HungExport, is_waited_for_at_the_end_of_the_server) {
  nfs4_.watch_leases(loop_);
  const auto listing = list("data", {kError | kType});
  loop_.pass(1s);
  ASSERT_TRUE(listing->ended);
  bool ended = false;
  nfs4_.wind_up([&] { ended = true; });
  loop_.pass(1s);
  EXPECT_FALSE(ended);
  held_->release_all();
  loop_.pass(1s);
  EXPECT_TRUE(ended);
}

// A client has locked a file of /data, which answers, when its connection goes.
class Nfs4LostClient : public Nfs4HungExport {
 protected:
  void SetUp() override {
    channel_.origin().connection = connection_;
    Nfs4HungExport::SetUp();
    file_ = create("locked");
    EXPECT_EQ(lock(), v4::NFS4_OK);
  }
  v4::nfsstat4 lock() {
    v4::LOCK4args args{v4::WRITE_LT, false, 0, 10, {}};
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file_.stateid, 0, {clientid_, Rope::copy_of(bytes_of("one"))}};
    return run({putfh(file_.handle), op(v4::OP_LOCK, &Op::oplock, std::move(args))}).status;
  }
  void hang(const Op& operation) {
    detach(
        call(std::make_shared<Listing>(),
             {"", minor_, {sequence(), putrootfh(), lookup("data"), lookup("hung"), operation}}));
    loop_.drain();
    ASSERT_EQ(held_->waiting.size(), 1u);
  }
  void lose_connection() {
    connection_->end();
    loop_.pass(200s);
    channel_.origin().connection = std::make_shared<rpc::Connection>();
    set_up_session("another client");
    file_ = open(open_args("locked", v4::OPEN4_SHARE_ACCESS_BOTH, false));
  }

  const std::shared_ptr<rpc::Connection> connection_ = std::make_shared<rpc::Connection>();
  Opened file_;
};

TEST_F(Nfs4LostClient, gives_way_although_what_it_reads_hangs_in_another_store) {
  hang(lookup("nothing"));
  lose_connection();
  EXPECT_EQ(lock(), v4::NFS4_OK);
  held_->release_all();
  loop_.drain();
  EXPECT_EQ(lock(), v4::NFS4_OK);
}

TEST_F(Nfs4LostClient, gives_way_although_it_opens_a_file_in_a_store_that_hangs) {
  hang(op(v4::OP_OPEN, &Op::opopen, open_args("nothing", v4::OPEN4_SHARE_ACCESS_READ, false)));
  lose_connection();
  EXPECT_EQ(lock(), v4::NFS4_OK);
}

TEST_F(Nfs4LostClient, keeps_its_locks_while_a_change_may_come_about) {
  hang(op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{"nothing"}));
  lose_connection();
  EXPECT_EQ(lock(), v4::NFS4ERR_DENIED);
  held_->release_all();
  loop_.pass(200s);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK);
  EXPECT_EQ(lock(), v4::NFS4_OK);
}

TEST_F(Nfs4LostClient, keeps_its_locks_while_its_connection_is_there) {
  hang(lookup("nothing"));
  loop_.pass(200s);
  channel_.origin().connection = std::make_shared<rpc::Connection>();
  set_up_session("another client");
  file_ = open(open_args("locked", v4::OPEN4_SHARE_ACCESS_BOTH, false));
  EXPECT_EQ(lock(), v4::NFS4ERR_DENIED);
}

}  // namespace
}  // namespace stag::nfs::nfs4
