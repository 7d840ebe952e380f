#include <algorithm>

#include "testing/nfs/volatile_server.h"

namespace stag::nfs::client {
namespace {

struct Volatile : testing::VolatileServer {
  using VolatileServer::VolatileServer;

  Outcome<std::uint64_t> store(const std::string& text) {
    return scripted.run(scripted.files.write_from(handle_of("file"), 0, bytes_of(text)));
  }
};

class ClientWrite : public ClientTest {};

TEST_F(ClientWrite, writes_big_files_to_a_real_server_reduced_or_not) {
  const std::string text = pattern((9u << 20) + 77);
  for (const bool reduce : {false, true}) {
    channel_.reduce = reduce;
    const Handle file = made_file(reduce ? "r" : "i", text);
    EXPECT_EQ(must(files().getattr(file)).size, text.size());
    EXPECT_TRUE(content(file, text.size()) == text);
  }
}

TEST_F(ClientWrite, reports_count_and_stability) {
  const Handle file = made_file("f");
  const auto part = must(files().write(file, 2, bytes_of("data"), Stability::FileSync));
  EXPECT_EQ(part.count, 4u);
  EXPECT_EQ(part.committed, Stability::FileSync);
  EXPECT_EQ(must(files().commit(file)), part.verifier);
  EXPECT_EQ(content(file, 10), std::string("\0\0data", 6));
}

TEST_F(ClientWrite, fails_without_permission) {
  const Handle file = made_file("f");
  options_.calls.credentials = rpc::Credentials::sys("tests", 5, 5);
  FileSystem stranger(channel_, files().root(), "/data", options_);
  EXPECT_EQ(status(stranger.write_from(file, 0, bytes_of("x"))), Status::Access);
}

TEST(ClientWriteFile, sends_a_window_of_unstable_writes_and_one_COMMIT) {
  FileSystemOptions options;
  options.window = 4;
  Volatile server(options);
  const std::string text = pattern(20u << 20);
  const TimePoint start = server.scripted.loop.now();
  const auto written = server.store(text);
  ASSERT_TRUE(written.ok()) << written.error().sentence;
  EXPECT_EQ(*written, text.size());
  EXPECT_TRUE(server.disk == text);
  EXPECT_EQ(server.writes, 20);
  EXPECT_EQ(server.commits, 1);
  EXPECT_EQ(server.scripted.loop.now() - start, std::chrono::milliseconds(20 / 4 + 1));
}

// Pieces of its own, and no memory for the third.
class ExhaustedSource final : public DataSource {
 public:
  Task<Outcome<Piece>> read(std::uint64_t, MutableBytes buffer) override {
    if (++pieces == 3) throw std::bad_alloc();
    co_return Piece{0, buffer};
  }
  int pieces = 0;
};

TEST(ClientWriteFile, waits_for_the_other_WRITEs_when_memory_runs_out) {
  Volatile server;
  ExhaustedSource source;
  EXPECT_TRUE(server.scripted.run(
      runs_out_of_memory(server.scripted.files.write_file(handle_of("file"), source))));
  EXPECT_EQ(server.writes, 1) << "it has been answered";
  const std::string text = pattern(20u << 20);
  for (const int failing : {1, 2, 8, 20}) {
    server.scripted.channel.no_memory_for_call = failing;
    EXPECT_TRUE(server.scripted.run(
        runs_out_of_memory(server.scripted.files.write_from(handle_of("file"), 0, bytes_of(text)))))
        << failing;
  }
  EXPECT_EQ(server.commits, 0);
}

TEST(ClientWriteFile, makes_a_single_write_durable_at_once) {
  Volatile server;
  ASSERT_TRUE(server.store("small").ok());
  EXPECT_EQ(server.disk, "small");
  EXPECT_EQ(server.writes, 1);
  EXPECT_EQ(server.commits, 0);
  ASSERT_TRUE(server.store("").ok());
  EXPECT_EQ(server.writes, 1);
}

TEST(ClientWriteFile, goes_on_after_short_writes) {
  Volatile server;
  server.most = 300'000;
  const std::string text = pattern(3'000'000);
  ASSERT_TRUE(server.store(text).ok());
  EXPECT_TRUE(server.disk == text);
}

TEST(ClientWriteFile, writes_again_what_a_restart_between_writes_has_lost) {
  Volatile server;
  server.restart_at_write = 5;
  const std::string text = pattern(12u << 20);
  ASSERT_TRUE(server.store(text).ok());
  EXPECT_EQ(server.starts, 2);
  EXPECT_TRUE(server.disk == text);
  EXPECT_GT(server.writes, 12);
}

TEST(ClientWriteFile, writes_again_what_a_restart_before_COMMIT_has_lost) {
  Volatile server;
  server.restarts_before_commit = 2;
  const std::string text = pattern(3u << 20);
  ASSERT_TRUE(server.store(text).ok());
  EXPECT_EQ(server.commits, 3);
  EXPECT_EQ(server.writes, 9);
  EXPECT_TRUE(server.disk == text);
}

TEST(ClientWriteFile, gives_up_on_a_server_that_restarts_for_ever) {
  Volatile server;
  server.restarts_before_commit = 1'000'000;
  const auto written = server.store(pattern(3u << 20));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, Error::Kind::Protocol);
}

// "ab", a hole, "cd", and zeros to the end.
class Sparse final : public DataSource {
 public:
  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes) override {
    if (offset == 0) co_return Piece{0, bytes_of("ab")};
    if (offset == 2) co_return Piece{5'000'000, bytes_of("cd")};
    if (offset == 5'000'004) co_return Piece{96, {}};
    co_return Piece{};
  }
};

TEST(ClientWriteFile, leaves_out_holes_and_sets_the_size_for_one_at_the_end) {
  Volatile server;
  Sparse source;
  const auto written =
      server.scripted.run(server.scripted.files.write_file(handle_of("f"), source));
  ASSERT_TRUE(written.ok()) << written.error().sentence;
  EXPECT_EQ(*written, 5'000'100u);
  EXPECT_EQ(server.writes, 2);
  ASSERT_EQ(server.disk.size(), 5'000'100u);
  EXPECT_EQ(server.disk.substr(0, 2), "ab");
  EXPECT_EQ(server.disk.substr(5'000'002, 2), "cd");
}

// Two WRITEs, a hole of a gigabyte, and two more.
class FarApart final : public DataSource {
 public:
  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes room) override {
    constexpr std::uint64_t kHole = 1u << 30;
    const std::uint64_t size = room.size();
    if (offset == 2 * size) co_return Piece{kHole, room};
    if (offset >= kHole + 4 * size) co_return Piece{};
    co_return Piece{0, room};
  }
};

TEST(ClientWriteFile, passes_over_a_hole_only_when_what_lies_before_it_is_answered) {
  Scripted world;
  std::vector<std::pair<std::uint64_t, TimePoint>> arrived;
  world.on<v3::NFSPROC3_WRITE>([&](const v3::WRITE3args& args, v3::WRITE3res& res) {
    arrived.emplace_back(args.offset, world.loop.now());
    res.resok().count = args.count;
    res.resok().committed = args.stable;
    res.resok().verf = Verifier{};
  });
  world.on<v3::NFSPROC3_COMMIT>(
      [](const v3::COMMIT3args&, v3::COMMIT3res& res) { res.resok().verf = Verifier{}; });
  FarApart source;
  ASSERT_TRUE(world.run(world.files.write_file(handle_of("f"), source)).ok());
  ASSERT_EQ(arrived.size(), 4u);
  EXPECT_EQ(arrived[0].second, arrived[1].second)
      << "beside each other they are in flight together";
  EXPECT_GT(arrived[2].first, arrived[1].first + (1u << 30));
  EXPECT_GT(arrived[2].second, arrived[1].second) << "a trip later";
}

// Fails after some bytes.
class Failing final : public DataSource {
 public:
  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes room) override {
    if (offset >= 3u << 20) co_return Failure{Error::of_local("the disk is broken")};
    co_return Piece{0, room};
  }
};

TEST(ClientWriteFile, ends_with_the_error_of_the_source) {
  Volatile server;
  Failing source;
  const auto written =
      server.scripted.run(server.scripted.files.write_file(handle_of("f"), source));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, Error::Kind::Local);
  EXPECT_EQ(server.commits, 0);
}

TEST(ClientWriteFile, ends_with_the_first_error_of_the_server) {
  Scripted world;
  int writes = 0;
  world.on<v3::NFSPROC3_WRITE>([&](const v3::WRITE3args& args, v3::WRITE3res& res) {
    if (++writes == 3) {
      res.status = v3::NFS3ERR_NOSPC;
      res.resfail() = {};
      return;
    }
    res.resok().count = args.count;
  });
  const std::string text = pattern(40u << 20);
  const auto written = world.run(world.files.write_from(handle_of("f"), 0, bytes_of(text)));
  ASSERT_FALSE(written.ok());
  EXPECT_TRUE(written.error().is(Status::NoSpace));
  EXPECT_EQ(written.error().sentence,
            "cannot write the file: no space left on the server; make room there");
  EXPECT_LT(writes, 20);
}

TEST(ClientWriteFaults, refuses_an_answer_that_takes_nothing_or_too_much) {
  for (const std::uint32_t count : {0u, 5u}) {
    Scripted world;
    world.on<v3::NFSPROC3_WRITE>(
        [count](const auto&, v3::WRITE3res& res) { res.resok().count = count; });
    const auto part = world.run(world.files.write(handle_of("f"), 0, bytes_of("four")));
    ASSERT_FALSE(part.ok());
    EXPECT_EQ(part.error().kind, Error::Kind::Protocol);
  }
}

}  // namespace
}  // namespace stag::nfs::client
