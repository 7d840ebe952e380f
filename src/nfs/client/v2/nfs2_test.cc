// NFS version 2 behind the API of version 3, against this project's server.
#include "nfs/client/v2/nfs2.h"

#include <limits>

#include "nfs/client/session/mount.h"
#include "nfs/client/session/session.h"
#include "nfs/export/file_handle.h"
#include "nfs/proto/nfs2.h"
#include "testing/nfs/client_harness.h"
#include "testing/rdma_pair.h"

namespace stag::nfs::client {
namespace {

class Nfs2Client : public ClientTest {
 protected:
  Nfs2Client() {
    options_.calls.version = 2;
    // Whatever is said beside version 2 is not understood.
    const auto point = run(mount(channel_, "/data", options_.calls.credentials, {}, 2));
    EXPECT_TRUE(point.ok());
    if (point) files2_ = std::make_unique<FileSystem>(channel_, point->root, "/data", options_);
  }
  FileSystem& files() { return *files2_; }
  Handle root() { return files().root(); }
  Handle made(const std::string& name, std::string_view content = {}) {
    const Node node = must(files().create(root(), name, {.mode = 0644}));
    if (!content.empty()) {
      EXPECT_EQ(must(files().write_from(node.handle, 0, bytes_of(content))), content.size());
    }
    return node.handle;
  }
  std::string content(const Handle& file, std::size_t size) {
    std::string text(size, '?');
    text.resize(must(files().read_into(file, 0, writable(text))));
    return text;
  }
  // The version of the last Call.
  std::uint32_t version_called() const {
    return load_be<std::uint32_t>(channel_.last_call.data() + 16);
  }

 private:
  std::unique_ptr<FileSystem> files2_;
};

TEST_F(Nfs2Client, moves_files_of_any_size_whole) {
  must(files().adopt_sizes());
  EXPECT_EQ(files().sizes().read, 8192u);
  EXPECT_EQ(files().sizes().write, 8192u);
  for (const bool reduce : {false, true}) {
    channel_.reduce = reduce;
    for (const std::size_t size : {0u, 1u, 8191u, 8192u, 8193u, 100'001u}) {
      const std::string name = "f" + std::to_string(size) + (reduce ? "r" : "");
      const Handle file = made(name, pattern(size));
      EXPECT_EQ(must(files().getattr(file)).size, size);
      EXPECT_EQ(content(file, size + 10), pattern(size));
      EXPECT_EQ(version_called(), 2u);
    }
  }
}

TEST_F(Nfs2Client, cuts_transfers_to_what_fits_before_anybody_has_asked_the_server) {
  const Handle file = made("file");
  const std::string data = pattern(10'000);
  const auto part = must(files().write(file, 0, bytes_of(data)));
  EXPECT_EQ(part.count, 8192u);
  EXPECT_EQ(part.committed, Stability::FileSync);
  std::string to(10'000, '?');
  const auto read = must(files().read(file, 0, writable(to)));
  EXPECT_EQ(read.count, 8192u);
  EXPECT_TRUE(read.eof);
  EXPECT_EQ(to.substr(0, 8192), data.substr(0, 8192));
  must(files().commit(file));
}

TEST_F(Nfs2Client, says_what_lies_beyond_its_numbers) {
  const Handle file = made("file");
  EXPECT_EQ(status(files().write(file, 0xffffffff, bytes_of("x"))), Status::FileTooBig);
  EXPECT_EQ(status(files().setattr(file, {.size = 1ull << 32})), Status::FileTooBig);
  std::string to(1, '?');
  EXPECT_TRUE(must(files().read(file, 1ull << 32, writable(to))).eof);
  EXPECT_EQ(status(files().lookup(root(), std::string(256, 'n'))), Status::NameTooLong);
  EXPECT_EQ(status(files().symlink(root(), "l", std::string(1025, 't'))), Status::NameTooLong);
  EXPECT_EQ(status(files().getattr(handle_of("short"))), Status::BadHandle);
}

TEST_F(Nfs2Client, makes_and_unmakes_names) {
  const Node dir = must(files().mkdir(root(), "dir", {.mode = 0750}));
  EXPECT_EQ(dir.attributes.type, FileType::Directory);
  EXPECT_EQ(dir.attributes.mode, 0750u);
  const Handle file = made("file");
  must(files().link(file, dir.handle, "second"));
  EXPECT_EQ(must(files().getattr(file)).links, 2u);
  must(files().rename(root(), "file", dir.handle, "third"));
  const Node link = must(files().symlink(root(), "link", "dir/third"));
  EXPECT_EQ(link.attributes.type, FileType::Symlink);
  EXPECT_EQ(must(files().readlink(link.handle)), "dir/third");
  EXPECT_EQ(must(files().walk("link")).handle, file);
  EXPECT_EQ(status(files().rmdir(root(), "dir")), Status::NotEmpty);
  must(files().remove(dir.handle, "second"));
  must(files().remove(dir.handle, "third"));
  must(files().rmdir(root(), "dir"));
  EXPECT_EQ(status(files().getattr(file)), Status::Stale);
}

TEST_F(Nfs2Client, refuses_a_guarded_create_of_a_taken_name) {
  made("file", "content");
  EXPECT_EQ(status(files().create(root(), "file", {.mode = 0600}, CreateMode::Guarded)),
            Status::Exists);
  EXPECT_EQ(status(files().create(root(), "file", {.mode = 0600}, CreateMode::Exclusive)),
            Status::Exists);
  EXPECT_EQ(must(files().create(root(), "file", {.size = 0})).attributes.size, 0u);
  const Node fresh = must(files().create(root(), "x", {.mode = 0640}, CreateMode::Exclusive));
  EXPECT_EQ(must(files().getattr(fresh.handle)).mode, 0640u);
}

TEST_F(Nfs2Client, makes_special_files) {
  const Node fifo = must(files().mknod(root(), "fifo", {}, {.mode = 0600}));
  EXPECT_EQ(fifo.attributes.type, FileType::Fifo);
  EXPECT_EQ(fifo.attributes.mode, 0600u);
  const Special disk{FileType::BlockDevice, {259, 1027}};
  EXPECT_EQ(must(files().mknod(root(), "disk", disk, {.mode = 0600})).attributes.device,
            disk.device);
  const Special socket{FileType::Socket, {}};
  EXPECT_EQ(must(files().mknod(root(), "socket", socket, {})).attributes.type, FileType::Socket);
}

TEST_F(Nfs2Client, sets_each_time_to_a_value_to_now_or_not_at_all) {
  const Handle file = made("file");
  const Time past{1000, 5000};
  must(files().setattr(file, {.accessed = SetTime::to(past), .modified = SetTime::to(past)}));
  EXPECT_EQ(must(files().getattr(file)).accessed, past);
  EXPECT_EQ(must(files().getattr(file)).modified, past);
  must(files().setattr(file, {.accessed = SetTime::now()}));
  EXPECT_GT(must(files().getattr(file)).accessed.seconds, 1000u);
  EXPECT_EQ(must(files().getattr(file)).modified, past);
  must(files().setattr(file, {.accessed = SetTime::to(past), .modified = SetTime::now()}));
  EXPECT_EQ(must(files().getattr(file)).accessed, past);
  EXPECT_GT(must(files().getattr(file)).modified.seconds, 1000u);
  must(files().setattr(file, {.mode = 0600, .modified = SetTime::to(past)}));
  EXPECT_EQ(must(files().getattr(file)).modified, past);
  EXPECT_EQ(must(files().getattr(file)).mode, 0600u);
  must(files().setattr(file, {.accessed = SetTime::now(), .modified = SetTime::now()}));
  EXPECT_GT(must(files().getattr(file)).modified.seconds, 1000u);
}

TEST_F(Nfs2Client, compares_the_guard_of_a_change_itself) {
  const Handle file = made("file");
  const Time before = must(files().getattr(file)).changed;
  must(files().setattr(file, {.mode = 0600}, before));
  EXPECT_EQ(status(files().setattr(file, {.mode = 0644}, Time{1, 0})), Status::NotSync);
  EXPECT_EQ(must(files().getattr(file)).mode, 0600u);
}

TEST_F(Nfs2Client, lists_names_and_leaves_attributes_to_lookups) {
  std::vector<std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    expected.push_back("entry-" + std::to_string(i));
    made(expected.back());
  }
  std::sort(expected.begin(), expected.end());
  Listing listing = files().list(root());
  std::vector<std::string> names;
  for (;;) {
    const std::vector<Entry> batch = must(listing.next());
    if (batch.empty()) break;
    for (const Entry& entry : batch) {
      names.push_back(entry.name);
      EXPECT_FALSE(entry.attributes.has_value());
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, expected);
}

TEST_F(Nfs2Client, judges_access_by_the_mode_bits) {
  const Node file = must(files().create(root(), "file", {.mode = 0640, .uid = 7, .gid = 8}));
  const auto granted = [&](std::uint32_t uid, std::uint32_t gid, std::vector<std::uint32_t> more) {
    FileSystemOptions options = options_;
    options.calls.credentials = rpc::Credentials::sys("tests", uid, gid, more);
    FileSystem other(channel_, root(), "/data", options);
    return must(other.access(file.handle, 0x3f));
  };
  EXPECT_EQ(granted(7, 1, {}), access::kRead | access::kModify | access::kExtend);
  EXPECT_EQ(granted(1, 8, {}), access::kRead);
  EXPECT_EQ(granted(1, 1, {3, 8}), access::kRead);
  EXPECT_EQ(granted(1, 1, {}), 0u);
  EXPECT_EQ(granted(0, 0, {}), access::kRead | access::kModify | access::kExtend);
  EXPECT_EQ(must(files().access(root(), 0x3f)), 0x1fu);
}

TEST_F(Nfs2Client, reports_usage_and_limits_as_far_as_version_2_has_them) {
  const auto stat = must(files().usage());
  EXPECT_GT(stat.total_bytes, 0u);
  EXPECT_GE(stat.free_bytes, stat.available_bytes);
  EXPECT_EQ(must(files().info()).max_file_size, 0x7fffffffu);
  EXPECT_EQ(must(files().name_limits()).max_name, 255u);
  must(files().ping());
  EXPECT_EQ(version_called(), 2u);
}

// Connects to the server of the test.
class Connector final : public rpc::Connector {
 public:
  Connector(Loop& loop, rpc::Service& service) : loop_(loop), service_(service) {}
  Loop& loop() override { return loop_; }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address,
                                                                      CancelToken) override {
    co_return std::unique_ptr<rpc::Channel>(
        std::make_unique<testing::LoopbackChannel>(loop_, service_));
  }

 private:
  Loop& loop_;
  rpc::Service& service_;
};

TEST_F(Nfs2Client, is_asked_for_in_the_URL) {
  made("file", "content");
  Connector connector(loop_, server_);
  auto session = run(Session::open({connector, connector},
                                   *Url::parse("nfs://server/data/file?version=2"), options_));
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ((*session)->files().root().size(), 32u);
  EXPECT_EQ((*session)->files().sizes().read, 8192u);
  EXPECT_EQ(must((*session)->files().walk((*session)->path())).attributes.size, 7u);
  const auto close = [](Session* of) -> Task<Ok> {
    co_await of->close();
    co_return Ok{};
  };
  run(close(session->get()));
  EXPECT_TRUE(call<mount3::MOUNTPROC1_DUMP>({}).size() <= 1);
  const auto refused = run(mount(channel_, "/none", {}, {}, 2));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, Status::NoEntry);
}

TEST(Nfs2ClientErrors, are_understood_from_other_servers) {
  FileSystemOptions options;
  options.calls.version = 2;
  options.calls.jukebox_for = Duration::zero();
  Scripted world(options);
  v2::nfsstat next = v2::NFS_OK;
  world.on<v2::NFSPROC_GETATTR>([&](const auto&, v2::attrstat& res) { res.status = next; });
  FileSystem files(world.channel, handle_of("exactly thirty-two bytes of name"), "/data", options);
  const std::pair<v2::nfsstat, Status> words[] = {{v2::NFSERR_WFLUSH, Status::Io},
                                                  {v2::NFSERR_XDEV, Status::CrossDevice},
                                                  {v2::NFSERR_EAGAIN, Status::Delay},
                                                  {v2::NFSERR_STALE, Status::Stale},
                                                  {v2::NFSERR_OPNOTSUPP, Status::NotSupported}};
  for (const auto& [said, heard] : words) {
    next = said;
    const auto outcome = world.run(files.getattr(files.root()));
    ASSERT_FALSE(outcome.ok());
    EXPECT_TRUE(outcome.error().is(heard)) << outcome.error().sentence;
  }
}

TEST(Nfs2ClientErrors, are_waited_out_where_the_server_says_not_now) {
  FileSystemOptions options;
  options.calls.version = 2;
  Scripted world(options);
  int calls = 0;
  int busy = 2;
  world.on<v2::NFSPROC_GETATTR>([&](const auto&, v2::attrstat& res) {
    if (++calls <= busy)
      res.status = v2::NFSERR_EAGAIN;
    else
      res.attributes() = {};
  });
  FileSystem files(world.channel, handle_of("exactly thirty-two bytes of name"), "/data", options);
  const auto got = world.run(files.getattr(files.root()));
  ASSERT_TRUE(got.ok()) << got.error().sentence;
  EXPECT_EQ(calls, 3);
  busy = std::numeric_limits<int>::max();
  const auto never = world.run(files.getattr(files.root()));
  ASSERT_FALSE(never.ok());
  EXPECT_TRUE(never.error().is(Status::Delay)) << never.error().sentence;
}

// A server and a client of it, joined by the simulated fabric with Sends of at most 1024 bytes.
class Nfs2ClientOverRdma : public ::testing::Test {
 protected:
  Nfs2ClientOverRdma() {
    ExportOptions open;
    open.root_squash = false;
    STAG_CHECK(nfs.add_export("/data", store, open).ok());
    nfs.add_nfs(pair.program_server);
    STAG_CHECK(pair.connect().ok());
    const FileHandles handles(ServerState::ephemeral(7).handle_key);
    Handle root;
    root = *Handle::from(*handles.seal2(handles.export_id("/data"), store->root()));
    FileSystemOptions options;
    options.calls.version = 2;
    options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
    files.emplace(*pair.channel, root, "/data", options);
  }
  static rpc::rdma::PairSetup setup() {
    rpc::rdma::PairSetup setup;
    setup.client.transport.inline_size = setup.server.transport.inline_size = 1024;
    return setup;
  }
  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = pair.loop.run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    return outcome ? std::move(*outcome) : T{};
  }
  // The Calls of a procedure; none of them is a Long Call.
  std::vector<rpc::rdma::WireMessage> calls(std::uint32_t procedure) {
    std::vector<rpc::rdma::WireMessage> found;
    for (rpc::rdma::WireMessage& call : pair.calls(testing::End::Active))
      if (call.word(3) == v2::NFS_PROGRAM && call.word(4) == 2 && call.word(5) == procedure)
        found.push_back(std::move(call));
    return found;
  }
  // The one Call of a procedure.
  rpc::rdma::WireMessage only_call(std::uint32_t procedure) {
    auto found = calls(procedure);
    EXPECT_EQ(found.size(), 1u) << procedure;
    return found.empty() ? rpc::rdma::WireMessage{} : found[0];
  }
  static std::uint64_t bytes(const rpcrdma::Segments& segments) {
    std::uint64_t sum = 0;
    for (const auto& segment : segments) sum += segment.length;
    return sum;
  }

  std::shared_ptr<vfs::MemoryFileSystem> store = std::make_shared<vfs::MemoryFileSystem>();
  NfsServer nfs{ServerState::ephemeral(7)};
  rpc::rdma::Pair pair{setup()};
  std::optional<FileSystem> files;
};

TEST_F(Nfs2ClientOverRdma, moves_data_and_link_texts_by_chunk) {
  PROVES("R8267-4-a", "R8267-4-b", "R8267-4-c", "R8267-4-d");
  const Handle file = must(files->create(files->root(), "file", {.mode = 0644})).handle;
  const std::string data = pattern(5001);
  EXPECT_EQ(must(files->write(file, 0, bytes_of(data))).count, 5001u);
  std::string back(8192, '?');
  EXPECT_EQ(must(files->read(file, 0, writable(back))).count, 5001u);
  EXPECT_EQ(back.substr(0, 5001), data);
  const std::string target = pattern(1001);
  std::string text = target;
  std::replace(text.begin(), text.end(), '\0', 'x');
  const Node link = must(files->symlink(files->root(), "link", text));
  EXPECT_EQ(must(files->readlink(link.handle)), text);

  const auto write = only_call(v2::NFSPROC_WRITE::number);
  ASSERT_EQ(write.header.read_list.size(), 1u);
  EXPECT_EQ(bytes(write.header.read_list[0].segments), 5001u);
  const auto symlink = only_call(v2::NFSPROC_SYMLINK::number);
  ASSERT_EQ(symlink.header.read_list.size(), 1u);
  EXPECT_EQ(bytes(symlink.header.read_list[0].segments), 1001u);
  // Behind the path come eight words of attributes, which stay in the message.
  EXPECT_EQ(symlink.payload.size(), symlink.header.read_list[0].position + 32);
  const auto read = only_call(v2::NFSPROC_READ::number);
  ASSERT_EQ(read.header.write_list.size(), 1u);
  EXPECT_EQ(bytes(read.header.write_list[0].segments), 8192u);
  ASSERT_EQ(only_call(v2::NFSPROC_READLINK::number).header.write_list.size(), 1u);
}

TEST_F(Nfs2ClientOverRdma, takes_long_listings_in_the_Reply_chunk) {
  PROVES("R8267-4-e", "R8267-4.1-a");
  const std::string stem(100, 'n');
  for (int i = 0; i < 100; ++i)
    must(files->create(files->root(), stem + std::to_string(i), {.mode = 0644}));
  Listing listing = files->list(files->root(), Listing::Detail::Names);
  std::size_t entries = 0;
  for (;;) {
    const std::vector<Entry> batch = must(listing.next());
    if (batch.empty()) break;
    entries += batch.size();
  }
  EXPECT_EQ(entries, 100u);
  const auto found = calls(v2::NFSPROC_READDIR::number);
  // 126 bytes or so for each of 102 entries: two full Replies of 8192 bytes, and no third try.
  EXPECT_EQ(found.size(), 2u);
  for (const auto& call : found) {
    EXPECT_TRUE(call.header.read_list.empty());
    EXPECT_TRUE(call.header.write_list.empty());
    EXPECT_TRUE(call.header.reply_chunk.has_value());
  }
}

}  // namespace
}  // namespace stag::nfs::client
