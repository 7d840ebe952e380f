#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "testing/nfs/client_harness.h"

namespace stag::nfs::client {
namespace {

// Collects, and says what it saw.
class Collector final : public DataSink {
 public:
  Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) override {
    EXPECT_EQ(offset, text.size()) << "in order";
    if (text.size() + data.size() > most) co_return Failure{Error::of_local("the disk is full")};
    text += text_of(data);
    ++pieces;
    co_return Ok{};
  }
  std::string text;
  int pieces = 0;
  std::size_t most = std::numeric_limits<std::size_t>::max();
};

// A file of `content` served with at most `piece` bytes a READ.
struct ScriptedFile {
  explicit ScriptedFile(std::string bytes, std::uint32_t at_most = 1u << 20,
                        FileSystemOptions options = {})
      : world(options), content(std::move(bytes)), piece(at_most) {
    world.on<v3::NFSPROC3_READ>(
        [this](const v3::READ3args& args, v3::READ3res& res) { serve(args, res); });
    world.on<v3::NFSPROC3_GETATTR>([this](const auto&, v3::GETATTR3res& res) {
      res.resok().obj_attributes.size = said_size.value_or(content.size());
    });
  }
  void serve(const v3::READ3args& args, v3::READ3res& res) {
    ++reads;
    const std::size_t begin = std::min<std::size_t>(args.offset, content.size());
    const std::size_t count =
        std::min({content.size() - begin, std::size_t{args.count}, std::size_t{piece}});
    res.resok().data = Rope::copy_of(bytes_of(content).subspan(begin, count));
    res.resok().count = static_cast<std::uint32_t>(count);
    res.resok().eof = begin + count == content.size();
  }
  Outcome<std::uint64_t> read(Collector& to) {
    return world.run(world.files.read_file(handle_of("file"), to));
  }

  Scripted world;
  std::string content;
  std::uint32_t piece;
  std::optional<std::uint64_t> said_size;
  int reads = 0;
};

class ClientRead : public ClientTest {};

TEST_F(ClientRead, yields_what_was_written_reduced_or_not) {
  const std::string text = pattern((5u << 20) + 4321);
  for (const bool reduce : {false, true}) {
    channel_.reduce = reduce;
    const Handle file = made_file(reduce ? "r" : "i", text);
    Collector to;
    EXPECT_EQ(must(files().read_file(file, to)), text.size());
    EXPECT_TRUE(to.text == text);
    EXPECT_TRUE(content(file, text.size() + 100) == text);
    EXPECT_TRUE(content(file, 1000) == text.substr(0, 1000));
  }
}

TEST_F(ClientRead, yields_nothing_of_an_empty_file) {
  Collector to;
  EXPECT_EQ(must(files().read_file(made_file("f"), to)), 0u);
  EXPECT_EQ(to.pieces, 0);
}

TEST_F(ClientRead, reports_count_and_end_of_file) {
  const Handle file = made_file("f", "0123456789");
  std::string to(4, '?');
  const auto part = must(files().read(file, 3, writable(to)));
  EXPECT_EQ(part.count, 4u);
  EXPECT_FALSE(part.eof);
  EXPECT_EQ(to, "3456");
  const auto last = must(files().read(file, 8, writable(to)));
  EXPECT_EQ(last.count, 2u);
  EXPECT_TRUE(last.eof);
  EXPECT_EQ(to, "8956");
  EXPECT_TRUE(must(files().read(file, 100, writable(to))).eof);
  EXPECT_EQ(must(files().read(file, 3, {})).count, 0u);
}

TEST(ClientReadFile, keeps_a_window_of_operations_in_flight) {
  FileSystemOptions options;
  options.window = 4;
  ScriptedFile file(pattern(20u << 20), 1u << 20, options);
  const TimePoint start = file.world.loop.now();
  Collector to;
  ASSERT_TRUE(file.read(to).ok());
  EXPECT_TRUE(to.text == file.content);
  EXPECT_EQ(file.reads, 20);
  // One turn for GETATTR, then each answer takes a millisecond and four come at a time.
  EXPECT_EQ(file.world.loop.now() - start, std::chrono::milliseconds(1 + 20 / 4));
}

TEST(ClientReadFile, goes_on_after_short_reads) {
  ScriptedFile file(pattern(3'000'000), 70'001);
  Collector to;
  ASSERT_TRUE(file.read(to).ok());
  EXPECT_TRUE(to.text == file.content);
  EXPECT_EQ(to.pieces, 3);
}

TEST(ClientReadFile, reads_to_the_real_end_when_the_file_grew_or_shrank) {
  for (const std::uint64_t said : {0ull, 1'000'000ull, 9'000'000ull}) {
    ScriptedFile file(pattern(3'000'000));
    file.said_size = said;
    Collector to;
    const auto read = file.read(to);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, 3'000'000u);
    EXPECT_TRUE(to.text == file.content) << said;
  }
}

TEST(ClientReadFile, puts_the_data_where_the_sink_wants_it) {
  ScriptedFile file(pattern(2'500'000));
  std::string to(2'500'000, '?');
  MemorySink sink(writable(to));
  ASSERT_TRUE(file.world.run(file.world.files.read_file(handle_of("f"), sink)).ok());
  EXPECT_TRUE(to == file.content);
  MemorySink small(writable(to).first(1000));
  const auto over = file.world.run(file.world.files.read_file(handle_of("f"), small));
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().kind, Error::Kind::Local);
}

TEST(ClientReadFile, ends_with_the_error_of_the_sink) {
  ScriptedFile file(pattern(5'000'000));
  Collector to;
  to.most = 2'000'000;
  const auto read = file.read(to);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Error::Kind::Local);
  EXPECT_EQ(read.error().sentence, "the disk is full");
}

TEST(ClientReadFile, ends_with_the_error_of_the_server) {
  ScriptedFile file(pattern(5'000'000));
  Scripted world;
  int reads = 0;
  world.on<v3::NFSPROC3_READ>([&](const v3::READ3args& args, v3::READ3res& res) {
    if (++reads < 3) return file.serve(args, res);
    res.status = v3::NFS3ERR_IO;
    res.resfail() = {};
  });
  Collector to;
  const auto read = world.run(world.files.read_file(handle_of("f"), to, 5'000'000));
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(read.error().is(Status::Io));
  EXPECT_TRUE(to.text == file.content.substr(0, 2u << 20));
}

TEST(ClientReadFile, does_not_wait_for_ever_for_a_server_that_sends_nothing) {
  ScriptedFile file(pattern(100), 0);
  Collector to;
  const auto read = file.read(to);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Error::Kind::Protocol);
}

// A sink that there is no memory for at its second piece.
class Exhausted final : public DataSink {
 public:
  Task<Outcome<Ok>> write(std::uint64_t, Bytes) override {
    if (++pieces == 2) throw std::bad_alloc();
    co_return Ok{};
  }
  int pieces = 0;
};

TEST(ClientReadFile, waits_for_the_other_READs_when_memory_runs_out) {
  ScriptedFile file(pattern(20u << 20));
  Exhausted to;
  EXPECT_TRUE(file.world.run(
      runs_out_of_memory(file.world.files.read_file(handle_of("file"), to, 20u << 20))));
  EXPECT_EQ(file.reads, 9) << "the window and one more: none is left behind";
  for (const int failing : {1, 2, 8}) {
    Collector all;
    file.world.channel.no_memory_for_call = failing;
    EXPECT_TRUE(file.world.run(
        runs_out_of_memory(file.world.files.read_file(handle_of("file"), all, 20u << 20))))
        << failing;
    EXPECT_TRUE(file.content.starts_with(all.text));
  }
}

// Of a file of 12 000 bytes, from its end to its beginning.
struct TwelveParts {
  TwelveParts() {
    for (std::size_t i = 0; i < back.size(); ++i) {
      back[i].assign(1000, '?');
      ranges.push_back({11'000 - 1000 * i, writable(back[i])});
    }
  }
  std::array<std::string, 12> back;
  std::vector<ReadRange> ranges;
};

TEST(ClientReadSeveral, keeps_a_window_of_calls_in_flight_and_yields_the_parts_in_order) {
  FileSystemOptions options;
  options.window = 4;
  ScriptedFile file(pattern(11'500), 1u << 20, options);
  TwelveParts twelve;
  const TimePoint start = file.world.loop.now();
  const auto parts = file.world.run(file.world.files.read_several(handle_of("f"), twelve.ranges));
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(file.world.loop.now() - start, std::chrono::milliseconds(12 / 4));
  ASSERT_EQ(parts->size(), twelve.back.size());
  for (std::size_t i = 0; i < parts->size(); ++i) {
    EXPECT_EQ((*parts)[i].count, i == 0 ? 500u : 1000u) << i;
    EXPECT_EQ((*parts)[i].eof, i == 0) << i;
    EXPECT_EQ(twelve.back[i].substr(0, (*parts)[i].count),
              file.content.substr(twelve.ranges[i].offset, (*parts)[i].count));
  }
  EXPECT_TRUE(file.world.run(file.world.files.read_several(handle_of("f"), {})).ok());
}

TEST(ClientReadSeveral, fails_as_a_whole_when_one_fails) {
  Scripted world;
  world.on<v3::NFSPROC3_READ>([](const v3::READ3args& args, v3::READ3res& res) {
    if (args.offset == 4000) res.status = v3::NFS3ERR_IO;
  });
  TwelveParts twelve;
  const auto parts = world.run(world.files.read_several(handle_of("f"), twelve.ranges));
  ASSERT_FALSE(parts.ok());
  EXPECT_TRUE(parts.error().is(Status::Io));
  for (const int failing : {1, 2, 8}) {
    world.channel.no_memory_for_call = failing;
    EXPECT_TRUE(
        world.run(runs_out_of_memory(world.files.read_several(handle_of("f"), twelve.ranges))))
        << failing;
  }
}

TEST(ClientReadFaults, refuses_an_answer_that_contradicts_itself_or_the_request) {
  for (const std::uint32_t count : {3u, 5u}) {
    Scripted world;
    world.on<v3::NFSPROC3_READ>([count](const auto&, v3::READ3res& res) {
      res.resok().data = Rope::copy_of(bytes_of(count == 3 ? "four" : "fiver"));
      res.resok().count = count;
    });
    std::string to(4, '?');
    const auto part = world.run(world.files.read(handle_of("f"), 0, writable(to)));
    ASSERT_FALSE(part.ok());
    EXPECT_EQ(part.error().kind, Error::Kind::Protocol);
    // Data that has no room is not placed at all.
    EXPECT_EQ(to, count == 5 ? "????" : "four");
  }
}

}  // namespace
}  // namespace stag::nfs::client
