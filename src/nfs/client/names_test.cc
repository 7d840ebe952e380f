// Attributes and names, against nfs/server.
#include "nfs/client/v3/values.h"
#include "nfs/ulb/nfs3.h"
#include "testing/nfs/client_harness.h"

namespace stag::nfs::client {
namespace {

class ClientNames : public ClientTest {};
class ClientAccess : public ClientNames {};
class ClientCreate : public ClientNames {};
class ClientReadlink : public ClientNames {};
class ClientSetattr : public ClientNames {};
class ClientUsage : public ClientNames {};

// Another Channel, and how much room its last Call made for an eligible result.
class Measured final : public rpc::Channel {
 public:
  explicit Measured(rpc::Channel& inner) : Channel(1000), inner_(inner) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    room = message.reply.items.empty() ? 0 : message.reply.items[0].max_length;
    // As an RPC-over-RDMA server: a result that its chunk cannot take is refused.
    if (room != 0 && room < refused_below)
      co_return Failure{rpc::CallError::transport(Reason::RdmaPeerRefusedChunks, where())};
    co_return co_await inner_.call(message);
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return inner_.loop(); }
  rpc::TransportKind kind() const override { return inner_.kind(); }
  std::string where() const override { return inner_.where(); }

  std::uint32_t room = 0;
  std::uint32_t refused_below = 0;

 private:
  rpc::Channel& inner_;
};

TEST_F(ClientReadlink, needs_no_more_memory_than_the_size_of_the_link) {
  PROVES("R8267-3-d");
  const std::string text = "../some where else";
  const Node made = must(files().symlink(files().root(), "link", text));
  Measured channel(channel_);
  FileSystem measured(channel, files().root(), "/data", options_);
  const std::uint64_t size = must(files().getattr(made.handle)).size;
  EXPECT_EQ(must(measured.readlink(made.handle, size)), text);
  EXPECT_EQ(channel.room, text.size());
  EXPECT_EQ(must(measured.readlink(made.handle)), text);
  EXPECT_EQ(channel.room, ulb::kMaxLinkText);
  // A size that tells nothing, and one that is not true.
  for (const std::uint64_t wrong : {0ull, 3ull, 1ull << 40}) {
    channel.refused_below = static_cast<std::uint32_t>(text.size());
    EXPECT_EQ(must(measured.readlink(made.handle, wrong)), text) << wrong;
    EXPECT_EQ(channel.room, ulb::kMaxLinkText);
  }
}

TEST_F(ClientCreate, makes_objects_with_the_given_attributes) {
  const Handle top = files().root();
  const Node dir = must(files().mkdir(top, "dir", {.mode = 0750, .uid = 7, .gid = 8}));
  EXPECT_EQ(dir.attributes.type, FileType::Directory);
  EXPECT_EQ(dir.attributes.mode, 0750u);
  EXPECT_EQ(dir.attributes.uid, 7u);
  EXPECT_EQ(dir.attributes.gid, 8u);
  const Node file = must(files().create(dir.handle, "file", {.mode = 0640}));
  EXPECT_EQ(file.attributes.type, FileType::Regular);
  EXPECT_EQ(file.attributes.mode, 0640u);
  const Node link = must(files().symlink(dir.handle, "link", "../some where"));
  EXPECT_EQ(link.attributes.type, FileType::Symlink);
  EXPECT_EQ(must(files().readlink(link.handle)), "../some where");
  const Node fifo =
      must(files().mknod(dir.handle, "fifo", {.type = FileType::Fifo}, {.mode = 0600}));
  EXPECT_EQ(fifo.attributes.type, FileType::Fifo);
  const Node disk =
      must(files().mknod(dir.handle, "disk", {FileType::BlockDevice, {8, 1}}, {.mode = 0660}));
  EXPECT_EQ(disk.attributes.type, FileType::BlockDevice);
  EXPECT_EQ(disk.attributes.device, (Device{8, 1}));
}

TEST_F(ClientCreate, opens_or_refuses_a_taken_name_as_the_mode_says) {
  const Handle top = files().root();
  const Node first = must(files().create(top, "f", {}, CreateMode::Guarded));
  EXPECT_EQ(must(files().create(top, "f", {}, CreateMode::Unchecked)).handle, first.handle);
  EXPECT_EQ(status(files().create(top, "f", {}, CreateMode::Guarded)), Status::Exists);
  EXPECT_EQ(status(files().create(top, "f", {}, CreateMode::Exclusive)), Status::Exists);
}

TEST_F(ClientCreate, sets_attributes_and_real_times_after_an_exclusive_one) {
  const Node node =
      must(files().create(files().root(), "x", {.mode = 0604}, CreateMode::Exclusive));
  EXPECT_EQ(node.attributes.mode, 0604u);
  const Node plain = must(files().create(files().root(), "y", {}));
  EXPECT_NEAR(node.attributes.modified.seconds, plain.attributes.modified.seconds, 600);
  EXPECT_NEAR(node.attributes.accessed.seconds, plain.attributes.accessed.seconds, 600);
}

TEST_F(ClientNames, are_removed) {
  const Handle top = files().root();
  made_file("f");
  must(files().mkdir(top, "d", {}));
  EXPECT_EQ(status(files().rmdir(top, "f")), Status::NotDirectory);
  EXPECT_FALSE(run(files().remove(top, "d")).ok());
  must(files().remove(top, "f"));
  must(files().rmdir(top, "d"));
  EXPECT_EQ(status(files().lookup(top, "f")), Status::NoEntry);
  EXPECT_EQ(status(files().lookup(top, "d")), Status::NoEntry);
}

TEST_F(ClientNames, leave_stale_handles_when_removed) {
  const Handle file = made_file("f");
  must(files().remove(files().root(), "f"));
  const Error gone = error(files().getattr(file));
  EXPECT_TRUE(gone.is(Status::Stale)) << gone.sentence;
}

TEST_F(ClientNames, move_between_directories_and_double_by_links) {
  const Handle top = files().root();
  const Handle file = made_file("a");
  const Node dir = must(files().mkdir(top, "d", {.mode = 0755}));
  must(files().rename(top, "a", dir.handle, "b"));
  EXPECT_EQ(status(files().lookup(top, "a")), Status::NoEntry);
  EXPECT_EQ(must(files().lookup(dir.handle, "b")).handle, file);
  must(files().link(file, top, "c"));
  EXPECT_EQ(must(files().lookup(top, "c")).attributes.links, 2u);
}

TEST_F(ClientSetattr, changes_attributes_and_checks_the_guard) {
  const Handle file = made_file("f", "12345678");
  must(files().setattr(file, {.mode = 0600,
                              .size = 3,
                              .accessed = SetTime::to({100, 5}),
                              .modified = SetTime::to({200, 6})}));
  const Attributes now = must(files().getattr(file));
  EXPECT_EQ(now.mode, 0600u);
  EXPECT_EQ(now.size, 3u);
  EXPECT_EQ(now.accessed, (Time{100, 5}));
  EXPECT_EQ(now.modified, (Time{200, 6}));
  must(files().setattr(file, {.mode = 0644}, now.changed));
  EXPECT_EQ(status(files().setattr(file, {.mode = 0}, Time{1, 1})), Status::NotSync);
  EXPECT_EQ(must(files().getattr(file)).mode, 0644u);
}

TEST_F(ClientAccess, yields_the_permissions_that_the_server_grants) {
  const Handle file = made_file("f");
  options_.calls.credentials = rpc::Credentials::sys("tests", 5, 5);
  FileSystem stranger(channel_, files().root(), "/data", options_);
  EXPECT_EQ(must(stranger.access(file, access::kRead | access::kModify)), access::kRead);
  EXPECT_EQ(must(files().access(file, access::kRead | access::kModify)),
            access::kRead | access::kModify);
}

TEST_F(ClientUsage, yields_size_and_limits_of_the_file_system) {
  EXPECT_GT(must(files().usage()).total_bytes, 0u);
  EXPECT_EQ(must(files().info()).read_max, 1u << 20);
  EXPECT_EQ(must(files().name_limits()).max_name, 255u);
  must(files().ping());
}

TEST(ClientFileSystem, cuts_its_wishes_to_what_the_server_takes) {
  Scripted world;
  world.on<v3::NFSPROC3_FSINFO>([](const auto&, v3::FSINFO3res& res) {
    res.resok().rtmax = 65536;
    res.resok().wtmax = 0;  // no statement
    res.resok().dtpref = 4u << 20;
  });
  ASSERT_TRUE(world.run(world.files.adopt_sizes()).ok());
  EXPECT_EQ(world.files.sizes().read, 65536u);
  EXPECT_EQ(world.files.sizes().write, 32768u);
  EXPECT_EQ(world.files.sizes().list, 1u << 20);
}

TEST(ClientFileSystem, asks_for_what_a_creating_reply_leaves_out) {
  Scripted world;
  int lookups = 0;
  world.on<v3::NFSPROC3_CREATE>([](const auto&, v3::CREATE3res& res) { res.resok() = {}; });
  world.on<v3::NFSPROC3_LOOKUP>([&](const v3::LOOKUP3args& args, v3::LOOKUP3res& res) {
    ++lookups;
    res.resok().object = nfs3::to_nfs_fh3(handle_of(args.what.name));
  });
  world.on<v3::NFSPROC3_GETATTR>([](const v3::GETATTR3args& args, v3::GETATTR3res& res) {
    if (args.object == nfs3::to_nfs_fh3(handle_of("new"))) res.resok().obj_attributes.fileid = 77;
    res.resok().obj_attributes.type = v3::NF3REG;
  });
  const auto made = world.run(world.files.create(world.files.root(), "new", {}));
  ASSERT_TRUE(made.ok()) << made.error().sentence;
  EXPECT_EQ(made->handle, handle_of("new"));
  EXPECT_EQ(made->attributes.file_id, 77u);
  EXPECT_EQ(lookups, 1);
}

}  // namespace
}  // namespace stag::nfs::client
